// Joins the pages of a long answer: a later page to those before it. Pure.
#ifndef R2CC_PROTO_PAGES_H_
#define R2CC_PROTO_PAGES_H_

#include "proto/r2cc.pb.h"

namespace r2cc {

inline void AddPage(const v1::StatusReply& page, v1::StatusReply* all) {
  // Of later pages the nodes alone.
  all->mutable_nodes()->MergeFrom(page.nodes());
  all->set_left_out(all->left_out() + page.left_out());
}
inline void AddPage(const v1::ListNicsReply& page, v1::ListNicsReply* all) { all->mutable_nodes()->MergeFrom(page.nodes()); }
inline void AddPage(const v1::Plan& page, v1::Plan* all) { all->mutable_nics()->MergeFrom(page.nics()); }
inline void AddPage(const v1::ExplainPlanReply& page, v1::ExplainPlanReply* all) { all->mutable_reasons()->MergeFrom(page.reasons()); }

}  // namespace r2cc

#endif  // R2CC_PROTO_PAGES_H_
