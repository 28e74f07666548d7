#pragma once

#include <string>
#include <vector>

#include "lagwise/data/formats/atomic_file.h"
#include "lagwise/train/adamw.h"

namespace lagwise {

/// Writes float32 tensors into a safetensors file, with the step they belong to.
/// Returns the file's hash as text.
std::string write_tensors(const std::string& file,
                          const std::vector<NamedTensor>& tensors, int64_t step,
                          const data::FileCalls& calls = {});

/// Copies the tensors of a file into those given, which are all of them. DataError for
/// a damaged file, for tensors of another step, and where names or shapes differ:
/// then with the differences, and nothing has been copied. `hash`: what
/// write_tensors() returned; empty: nobody knows.
void read_tensors(const std::string& file, const std::vector<NamedTensor>& tensors,
                  int64_t step, const std::string& hash = "");

/// DataError where read_tensors() would find the file damaged or of another step, and
/// with `finite` also where it holds a number that is not.
void check_tensors(const std::string& file, int64_t step, const std::string& hash,
                   bool finite);

}  // namespace lagwise
