#pragma once

#include <string_view>

namespace lagwise::report {

// The files of lagwise/report/page, put into the library by cmake/page.cmake.

std::string_view page_frame();   ///< page.html, with @TITLE@, @STYLE@, @DATA@, @SCRIPT@
std::string_view page_style();   ///< every .css
std::string_view page_script();  ///< every .js

}  // namespace lagwise::report
