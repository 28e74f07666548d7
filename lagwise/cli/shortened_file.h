#pragma once

namespace lagwise::cli {

/// A file that someone cuts short while we read it, or that the disk does not give any
/// more, takes its pages out of our memory: the system sends SIGBUS. From now on that
/// ends the program with one line that names the file, and kData. What was saved stands:
/// files are replaced whole.
void report_shortened_files();

}  // namespace lagwise::cli
