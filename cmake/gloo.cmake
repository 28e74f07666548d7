# Gloo connects processes (lagwise/dist). torch has it inside, but to use it takes Gloo's own
# headers, of the same version: Debian has them as libgloo-dev in the folder of torch's own,
# the wheels of torch leave them out. Headers from elsewhere would be of another version.
find_path(GLOO_INCLUDE gloo/rendezvous/store.h PATHS ${TORCH_INCLUDE_DIRS} /usr/include
          NO_DEFAULT_PATH NO_CACHE)
find_path(C10D_INCLUDE torch/csrc/distributed/c10d/ProcessGroupGloo.hpp
          PATHS ${TORCH_INCLUDE_DIRS} NO_DEFAULT_PATH NO_CACHE)
if(GLOO_INCLUDE AND GLOO_INCLUDE STREQUAL C10D_INCLUDE)
  set(LAGWISE_GLOO ON)
else()
  set(LAGWISE_GLOO OFF)
endif()
message(STATUS "Training with several processes (Gloo): ${LAGWISE_GLOO}")
