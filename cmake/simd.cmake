# Which instruction sets the kernels are compiled for. Highway compiles each kernel once
# per set and chooses when the program runs, so a library of `all` is right and fast
# everywhere. That takes three times as long to compile as `native`: the best set of this
# machine (beside AVX-512 also AVX2, which is the better for narrow heads), and plain C++
# for any other.
set(LAGWISE_SIMD all CACHE STRING "Instruction sets of the kernels: all or native")
set_property(CACHE LAGWISE_SIMD PROPERTY STRINGS all native)

if(LAGWISE_SIMD STREQUAL native)
  set(best HWY_SCALAR)
  if(EXISTS /proc/cpuinfo)
    file(READ /proc/cpuinfo cpu)
    if(cpu MATCHES " avx512vl" AND cpu MATCHES " avx512bw" AND cpu MATCHES " avx512dq"
       AND cpu MATCHES " avx512cd")
      set(best "HWY_AVX3 | HWY_AVX2")
    elseif(cpu MATCHES " avx2" AND cpu MATCHES " fma" AND cpu MATCHES " bmi2")
      set(best HWY_AVX2)
    elseif(cpu MATCHES " sse4_2" AND cpu MATCHES " aes")
      set(best HWY_SSE4)
    endif()
  endif()
  message(STATUS "Kernels: ${best} and plain C++ alone (LAGWISE_SIMD=native)")
  target_compile_definitions(lagwise_flags INTERFACE
                             "HWY_DISABLED_TARGETS=(~(${best} | HWY_SCALAR | HWY_EMU128))")
elseif(NOT LAGWISE_SIMD STREQUAL all)
  message(FATAL_ERROR "LAGWISE_SIMD: expected all or native, got '${LAGWISE_SIMD}'")
endif()
