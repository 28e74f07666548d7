#pragma once

#include <exception>
#include <iosfwd>

namespace lagwise::cli {

/// Writes "lagwise: <what went wrong>" as one line, and returns the ExitCode that
/// belongs to it. With `trace`, lines follow with the type of the exception, those
/// nested in it, and where torch raised it.
int report_failure(std::exception_ptr failure, bool trace, std::ostream& out);

}  // namespace lagwise::cli
