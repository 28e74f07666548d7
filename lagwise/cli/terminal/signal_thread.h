#pragma once

namespace lagwise::cli {

/// From here on a thread of its own receives every signal that somebody sends us, and
/// threads that compute receive none; call it first, for threads made before it do not
/// follow. What a signal does stays as it is: its handler, or the system's default.
///
/// A signal's handler runs on the stack of the thread that it interrupts, wherever the
/// stack pointer stands. oneDNN 2.6's products for AVX-512 (gemm_f32, made at run time) let
/// it point into a buffer of the heap while they compute, so a handler called there
/// writes its frame over somebody else's memory.
void receive_signals_apart();

}  // namespace lagwise::cli
