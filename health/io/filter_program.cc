#include "health/io/filter_program.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>

#include <cstddef>
#include <cstring>

namespace r2cc::health {
namespace {

// A program sees the UDP header first, and the IP header at SKF_NET_OFF.
constexpr size_t kHeader = 8;

sock_filter Load(size_t at) { return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(at)); }

// Goes on if the word that was loaded is that of `bytes`, in the order of the network; else `skipped` instructions later.
sock_filter Expect(const uint8_t* bytes, size_t skipped) {
  uint32_t word;
  std::memcpy(&word, bytes, sizeof(word));
  return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ntohl(word), 0, static_cast<uint8_t>(skipped));
}

constexpr sock_filter kDrop = BPF_STMT(BPF_RET | BPF_K, 0);
constexpr sock_filter kTake = BPF_STMT(BPF_RET | BPF_K, UINT32_MAX);

void Block(int family, const std::string& source, std::vector<sock_filter>* program) {
  uint8_t address[sizeof(in6_addr)];
  if (inet_pton(family, source.c_str(), address) != 1) return;
  const size_t words = (family == AF_INET ? sizeof(in_addr) : sizeof(in6_addr)) / 4;
  const size_t at = SKF_NET_OFF + (family == AF_INET ? offsetof(iphdr, saddr) : offsetof(ip6_hdr, ip6_src));
  for (size_t word = 0; word < words; ++word) {
    program->push_back(Load(at + 4 * word));
    program->push_back(Expect(address + 4 * word, 2 * (words - word) - 1));
  }
  program->push_back(kDrop);
}

}  // namespace

std::vector<sock_filter> FilterProgram(const DatagramFilter& filter, int family, const std::vector<std::string>& blocked) {
  std::vector<sock_filter> program;
  for (const std::string& source : blocked) Block(family, source, &program);
  if (filter.words.empty()) {
    program.push_back(kTake);
    return program;
  }
  for (const sock_filter& step : {Load(kHeader), Expect(filter.head.data(), 1), sock_filter BPF_STMT(BPF_JMP | BPF_JA, 1), kDrop})
    program.push_back(step);
  for (const auto& word : filter.words)
    for (const sock_filter& step :
         {Load(kHeader + filter.at), Expect(word.data(), 3), Load(kHeader + filter.at + 4), Expect(word.data() + 4, 1), kTake})
      program.push_back(step);
  program.push_back(kDrop);
  return program;
}

}  // namespace r2cc::health
