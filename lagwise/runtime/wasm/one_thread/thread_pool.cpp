// runtime/thread_pool.h where there is one thread: however many are asked for, this one
// does all the work.

#include "lagwise/runtime/thread_pool.h"

namespace lagwise::runtime {

ThreadPool::ThreadPool(int) {}
ThreadPool::~ThreadPool() = default;

void ThreadPool::run_parts(Call call, const void* context) { call(context, 0, 1); }

}  // namespace lagwise::runtime
