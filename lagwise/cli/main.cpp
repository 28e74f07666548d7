#include "lagwise/cli/program.h"
#include "lagwise/cli/verbs.h"

int main(int count, char** words) {
  using namespace lagwise::cli;
  return run_program({add_data, add_encodings, add_bench, add_doctor},
                     {words + 1, words + count});
}
