#pragma once

// The one place that states the version: CMakeLists.txt reads these three lines.
#define LAGWISE_VERSION_MAJOR 0
#define LAGWISE_VERSION_MINOR 2
#define LAGWISE_VERSION_PATCH 0
