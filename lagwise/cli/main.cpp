#include "lagwise/cli/program.h"
#include "lagwise/cli/verbs.h"

int main(int count, char** words) {
  using namespace lagwise::cli;
  return run_program({add_data, add_train, add_eval, add_generate, add_compare,
                      add_report, add_encodings, add_list, add_bench, add_doctor},
                     {words + 1, words + count});
}
