# Finds libtorch, and what differs between the two versions of it that lagwise is built
# and tested with:
#
#                     Debian's libtorch-dev, 1.13   a wheel of torch, 2.13
#   found             by CMake, in /usr             by asking LAGWISE_PYTHON
#   matrix products   oneDNN of Debian              MKL, which is inside libtorch_cpu
#   fmt               Debian's library              headers inside torch/include alone
#   OpenMP            GCC's libgomp                 torch/lib/libgomp.so.1
set(LAGWISE_PYTHON "" CACHE FILEPATH
    "The Python whose torch is built against; empty: Debian's libtorch")
if(SKBUILD AND NOT LAGWISE_PYTHON)  # pip builds the wheel
  set(LAGWISE_PYTHON ${Python_EXECUTABLE})
endif()

if(LAGWISE_PYTHON)
  execute_process(
    COMMAND ${LAGWISE_PYTHON} -c "import torch; print(torch.utils.cmake_prefix_path)"
    OUTPUT_VARIABLE torch_cmake OUTPUT_STRIP_TRAILING_WHITESPACE
    ERROR_VARIABLE problem RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "LAGWISE_PYTHON: ${LAGWISE_PYTHON} cannot import torch: ${problem}")
  endif()
  # Its CMake files look for further ones and for libraries, and must not find Debian's.
  cmake_path(GET torch_cmake PARENT_PATH torch_share)
  cmake_path(GET torch_share PARENT_PATH torch_folder)
  list(PREPEND CMAKE_PREFIX_PATH ${torch_cmake} ${torch_folder})
  foreach(place Torch_DIR Caffe2_DIR TORCH_LIBRARY c10_LIBRARY)  # of another Python
    unset(${place} CACHE)
  endforeach()
endif()
find_package(Torch REQUIRED)
# Some of its classes are a field longer without NDEBUG, and libtorch was compiled with it.
target_compile_definitions(torch INTERFACE $<$<CONFIG:Debug>:NDEBUG>)
if(TARGET caffe2::mkl)  # MKL's folders on the machine that built the wheel
  set_target_properties(caffe2::mkl PROPERTIES INTERFACE_LINK_DIRECTORIES "")
endif()

# at::parallel_for is inline, so its threads are those of the OpenMP that we link. It must
# be torch's: with two of them, torch.set_num_threads would not bind ours.
set(torch_gomp ${TORCH_INSTALL_PREFIX}/lib/libgomp.so.1)
if(EXISTS ${torch_gomp})
  set(OpenMP_gomp_LIBRARY ${torch_gomp} CACHE FILEPATH "" FORCE)
endif()
find_package(OpenMP REQUIRED)

# One of the files ops/products/*.cpp multiplies matrices; the others are not compiled.
if(Torch_VERSION VERSION_LESS 2)
  set(other_products torch_blas)
  # Its own CMake package asks for OpenCL, which nothing here uses.
  find_path(ONEDNN_INCLUDE oneapi/dnnl/dnnl.h REQUIRED)
  find_library(ONEDNN_LIBRARY dnnl REQUIRED)
else()
  set(other_products onednn)
  # Without it torch keeps old names for types of the standard library.
  target_compile_definitions(torch INTERFACE C10_NODEPRECATED)
endif()

# The headers of fmt in a wheel come before Debian's, and no library fits them.
find_package(fmt REQUIRED)
set(LAGWISE_FMT fmt::fmt)
if(LAGWISE_PYTHON AND EXISTS ${TORCH_INSTALL_PREFIX}/include/fmt)
  set(LAGWISE_FMT fmt::fmt-header-only)
endif()
