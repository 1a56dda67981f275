/* Tensor taps: the C interface of libr2cc-observe.so. docs/operate/observe.md says what they are.
 *
 * A call returns 0, or a code, and then r2cc_observe_error() is one line that says why. Each struct begins with its size in bytes. Nothing
 * is thrown. A producer is used by one thread at a time, and so is a reader. Pointers that a reader gives are good until its next call. */
#ifndef R2CC_OBSERVE_CAPI_OBSERVE_H_
#define R2CC_OBSERVE_CAPI_OBSERVE_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  R2CC_OBSERVE_OK = 0,
  R2CC_OBSERVE_INVALID = 1,  /* the arguments make no sense, or the step cannot be whole */
  R2CC_OBSERVE_SYSTEM = 2,   /* the system refuses: memory, files */
  R2CC_OBSERVE_NOT_HERE = 3, /* no such run, device or row */
  R2CC_OBSERVE_CUT_OFF = 4,  /* what was read in place may be wrong */
  R2CC_OBSERVE_FORKED = 5,   /* a child that fork() made calls for its parent's producer */
  R2CC_OBSERVE_BROKEN = 6,   /* what is in shared memory makes no sense; the reader goes on behind it */
  R2CC_OBSERVE_TIMEOUT = 7
};

/* The dtypes, by safetensors' names: U8 I8 BOOL U16 I16 F16 BF16 U32 I32 F32 U64 I64 F64 F8_E4M3 F8_E5M2, from 0; 15 is STATS, of a record
 * alone: float least, greatest, mean, rms of a row's finite elements; uint32_t NaNs, infinities. */
enum { R2CC_OBSERVE_COPY = 0, R2CC_OBSERVE_STATS = 1, R2CC_OBSERVE_HASH = 2 };
enum { R2CC_OBSERVE_DECODE = 1, R2CC_OBSERVE_PREFILL = 2 };

typedef struct r2cc_observe_producer r2cc_observe_producer;
typedef struct r2cc_observe_reader r2cc_observe_reader;

/* Of this thread's last call that failed. */
const char* r2cc_observe_error(void);
/* As --version of the program prints it: release, revision and the version of records, two lines. */
const char* r2cc_observe_release(void);
uint32_t r2cc_observe_crc32c(const void* data, uint64_t bytes, uint32_t seed);

typedef struct {
  uint64_t bytes;
  const char* run;
  const char* device; /* "host", "cuda" or "cuda:NUMBER": whose memory the tensors are in */
  uint64_t rank;
  uint64_t host_bytes;        /* 0: 512 MiB */
  uint64_t every;             /* 0: 1 */
  uint64_t phases;            /* 0: both */
  uint64_t block_ns;          /* 0: a step that finds no room is dropped at once */
  uint64_t reader_timeout_ns; /* 0: 5 s */
  uint64_t device_bytes;      /* of a GPU's ring; 0: 64 MiB */
  uint64_t held_bytes;        /* of tensors that r2cc_observe_hold keeps waiting on a GPU; 0: 64 MiB */
} r2cc_observe_options;

typedef struct {
  uint64_t bytes;
  const char* name;
  const uint64_t* shape; /* of a row if `rows` */
  uint32_t dimensions;
  uint8_t op, dtype, group, rows;
} r2cc_observe_tap;

typedef struct {
  uint64_t bytes;
  const void* data;
  const uint64_t* shape;
  const int64_t* strides; /* in bytes; null: without holes */
  uint64_t dimensions;
} r2cc_observe_tensor;

/* Read when the step begins: by `begin`, or of a GPU in the stream's order there. */
typedef struct {
  uint64_t bytes;
  uint64_t count;
  const void* indices; /* null: the first `count` */
  uint64_t index_bytes;
  const void* count_at; /* of a GPU: where the count lies; null: `count` it is */
  uint64_t count_bytes;
} r2cc_observe_rows;

typedef struct {
  uint64_t bytes;
  uint64_t steps, records, dropped_device, dropped_host, unwanted, missed, cut_off, lost_to_files;
} r2cc_observe_counts;

int r2cc_observe_open(const r2cc_observe_options* options, r2cc_observe_producer** producer);
/* Segments and a manifest in `folder`, by a thread of their own. 0 for the defaults. */
int r2cc_observe_files(r2cc_observe_producer* producer, const char* folder, uint64_t segment_bytes, uint64_t segment_age_ns);
int r2cc_observe_layout(r2cc_observe_producer* producer, const r2cc_observe_tap* tags, uint64_t tag_count, const r2cc_observe_tap* taps,
                        uint64_t tap_count, uint64_t rows_most, uint32_t* layout);
/* Of a GPU: the CUDA stream (CUstream) in whose order the calls of a step work from now on. It may be captured: then each replay of the
 * graph is a step, and no call is made for it. */
int r2cc_observe_stream(r2cc_observe_producer* producer, uint64_t stream);
/* A step. *taken is 0 if it has its outcome already; then the calls that follow do nothing. */
int r2cc_observe_begin(r2cc_observe_producer* producer, uint32_t layout, uint64_t phase, const r2cc_observe_rows* rows, int* taken);
/* Copies a tag or tap now. Nothing if its group is off. */
int r2cc_observe_inline(r2cc_observe_producer* producer, int is_tag, uint64_t index, const r2cc_observe_tensor* tensor);
/* Copies all taps that are not copied yet, and ends the step. `taps` by the layout's order; those of no bytes (struct size 0) are left out.
 */
int r2cc_observe_gather(r2cc_observe_producer* producer, const r2cc_observe_tensor* taps, uint64_t count);
/* *must: 1 if steps of the layout do not fit twice into a GPU's ring. Then a step is r2cc_observe_hold and no other call. */
int r2cc_observe_must_hold(r2cc_observe_producer* producer, uint32_t layout, int* must);
/* A whole step that is copied from where its tensors are, in the stream's order; not in a capture. All tags and taps of the layout, without
 * holes. *id: they stay as they are until r2cc_observe_released is as much. 0: the step was dropped, as held_bytes are used up. */
int r2cc_observe_hold(r2cc_observe_producer* producer, uint32_t layout, uint64_t phase, const r2cc_observe_tensor* tags, uint64_t tag_count,
                      const r2cc_observe_tensor* taps, uint64_t tap_count, uint64_t* id);
int r2cc_observe_released(r2cc_observe_producer* producer, uint64_t* id);
/* The step does not end. */
int r2cc_observe_abandon(r2cc_observe_producer* producer);
/* For a self-check: the hash of a tensor as it is now, as R2CC_OBSERVE_HASH makes it. Waits for a GPU; refused while its stream is
 * captured. */
int r2cc_observe_hash(r2cc_observe_producer* producer, const r2cc_observe_tensor* tensor, uint8_t dtype, uint64_t* hash);
/* The groups that are on, from the step after the next one on. */
int r2cc_observe_set(r2cc_observe_producer* producer, uint64_t groups);
int r2cc_observe_counters(r2cc_observe_producer* producer, r2cc_observe_counts* counts);
/* All steps until now are in the ring, and in files if there are any. Waits for a GPU. */
int r2cc_observe_flush(r2cc_observe_producer* producer, uint64_t timeout_ns);
/* The memory stays as long as somebody has it open. Frees the producer. Waits for the files. */
int r2cc_observe_close(r2cc_observe_producer* producer);

typedef struct {
  uint64_t bytes;
  uint64_t id, pid, holder_pid, rank;
  uint64_t life;  /* 0 open, 1 closed, 2 failed */
  uint64_t alive; /* 1: its process is there */
  r2cc_observe_counts counts;
  uint64_t ring_bytes;
  char run[72];
  char cause[200];
} r2cc_observe_run;

/* The producers of this user whose run is `run`; null: all. *count: how many there are, which may be more than `most`. */
int r2cc_observe_find(const char* run, r2cc_observe_run* found, uint64_t most, uint64_t* count);
/* `id` as it was found; 0: the only one of that run. */
int r2cc_observe_reader_open(const char* run, uint64_t id, r2cc_observe_reader** reader);
/* From now on the producer keeps for it what it has not read, until it stalls. */
int r2cc_observe_reader_register(r2cc_observe_reader* reader);

enum { R2CC_OBSERVE_NOTHING = 0, R2CC_OBSERVE_RECORD = 1, R2CC_OBSERVE_END = 2 };
typedef struct {
  uint64_t bytes;
  uint64_t found; /* what this is */
  uint64_t step, sequence, groups, time_ns, arrival_ns, layout, rows, rank;
  uint64_t tags, taps;
  r2cc_observe_counts gap; /* what is missing before it */
  const void* data;
  uint64_t data_bytes;
} r2cc_observe_record;
int r2cc_observe_next(r2cc_observe_reader* reader, r2cc_observe_record* record);

typedef struct {
  uint64_t bytes;
  const char* name;
  const void* data; /* null: its group is off */
  uint64_t data_bytes;
  uint64_t shape[9];
  uint32_t dimensions;
  uint8_t op, dtype, group, rows;
} r2cc_observe_view;
int r2cc_observe_record_tap(r2cc_observe_reader* reader, int is_tag, uint64_t index, r2cc_observe_view* view);
/* R2CC_OBSERVE_CUT_OFF: what was read of the record may be wrong. */
int r2cc_observe_release_record(r2cc_observe_reader* reader);
int r2cc_observe_reader_counts(r2cc_observe_reader* reader, r2cc_observe_run* run);
int r2cc_observe_reader_close(r2cc_observe_reader* reader);

#ifdef __cplusplus
}
#endif

#endif  // R2CC_OBSERVE_CAPI_OBSERVE_H_
