// runtime/thread_pool.h where there is one thread: however many are asked for, this one
// does all the work.

#include "lagwise/runtime/thread_pool.h"

namespace lagwise::runtime {

ThreadPool::ThreadPool(int) : spins_(0), queues_(1) {}
ThreadPool::~ThreadPool() = default;

void ThreadPool::run_parts(Call call, const void* context) { call(context, {0, 1, 0}); }

}  // namespace lagwise::runtime
