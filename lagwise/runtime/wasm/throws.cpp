// What `throw` does in the module. Debian's C++ library for WebAssembly cannot unwind the
// stack, so nothing is caught there: an exception hands its text to whoever holds the
// module, who gives the module up. In JavaScript `failed` throws an Error in its turn.

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <typeinfo>

extern "C" {

[[noreturn]] __attribute__((import_module("lagwise"), import_name("failed"))) void
lagwise_failed(const char* text, size_t size);

void* __cxa_allocate_exception(size_t size) noexcept { return std::malloc(size); }

void __cxa_free_exception(void* thrown) noexcept { std::free(thrown); }

/// All that lagwise and its libraries throw begins with a std::exception.
[[noreturn]] void __cxa_throw(void* thrown, std::type_info*, void (*)(void*)) {
  const char* text = static_cast<const std::exception*>(thrown)->what();
  lagwise_failed(text, std::strlen(text));
}

}  // extern "C"
