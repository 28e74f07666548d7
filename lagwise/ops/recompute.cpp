#include "lagwise/ops/recompute.h"

namespace lagwise::ops {
namespace {

thread_local bool on_now = false;

}  // namespace

bool recomputes() { return on_now; }

WithRecompute::WithRecompute(bool on) : before_(on_now) { on_now = on; }
WithRecompute::~WithRecompute() { on_now = before_; }

}  // namespace lagwise::ops
