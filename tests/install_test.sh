#!/bin/sh
# Installs a build, moves the installed tree elsewhere and builds examples/ against it:
#   tests/install_test.sh build/release
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
build=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  echo "install_test: $*" >&2
  exit 1
}

# Besides the targets of `make build`, nothing may be needed.
targets=$(make -n -C "$root" build | sed -n 's/.* --target //p')
# shellcheck disable=SC2086  # targets are words
ninja -C "$build" -t commands $targets >"$work/commands"
products=$(sed -nE 's/.* TYPE (STATIC_LIBRARY|SHARED_LIBRARY|EXECUTABLE) FILES ".*\/(.*)"\)$/\2/p' \
  "$build/cmake_install.cmake")
[ -n "$products" ] || fail "no programs and libraries among the install rules"
for product in $products; do
  grep -qE "[ /]$product( |\$)" "$work/commands" ||
    fail "$product is installed, but make build does not build it"
done

cmake --install "$build" --prefix "$work/first" >/dev/null
for kind in test reference problem outcome layout all_pairs -inl.h; do
  if find "$work/first/include" -name "*$kind*" | grep .; then
    fail "the headers above are not public"
  fi
done
if grep -rlE "$root|$work" --include='*.cmake' --include='*.pc' "$work/first"; then
  fail "the files above contain paths of the build"
fi
mv "$work/first" "$work/moved"

echo "-- with torch"
cmake -G Ninja -S "$root/examples" -B "$work/examples" \
  -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$work/moved" >"$work/log" || { cat "$work/log"; exit 1; }
cmake --build "$work/examples"
"$work/examples/own_module"
"$work/examples/kernels_only"
"$work/examples/from_scratch"
"$work/moved/bin/lagwise" --version

echo "-- without torch"
cmake -G Ninja -S "$root/examples" -B "$work/kernels" -DKERNELS_ONLY=ON \
  -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$work/moved" >"$work/log" || { cat "$work/log"; exit 1; }
cmake --build "$work/kernels"
"$work/kernels/kernels_only"
"$work/kernels/from_scratch"
if grep Torch "$work/kernels/CMakeCache.txt"; then
  fail "the component kernels looks for torch"
fi
if readelf -d "$work/kernels/kernels_only" | grep -E 'torch|c10'; then
  fail "kernels_only links torch"
fi

echo "-- the runtime alone, in C"
cat >"$work/tiny.toml" <<'RECIPE'
[model]
layers = 1
dim = 16
heads = 2
encoding = "rope:layout=half"
[data]
task = "music:styles=2,songs=20"
length = 32
[train]
steps = 2
batch = 4
warmup = 1
eval_examples = 4
RECIPE
"$work/moved/bin/lagwise" train "$work/tiny.toml" --out "$work/run" >"$work/log" 2>&1 ||
  { cat "$work/log"; exit 1; }
"$work/moved/bin/lagwise" export "$work/run" --out "$work/song.lagwise" --weights int8
cmake -G Ninja -S "$root/examples" -B "$work/runtime" -DRUNTIME_ONLY=ON \
  -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$work/moved" >"$work/log" || { cat "$work/log"; exit 1; }
cmake --build "$work/runtime"
"$work/runtime/play_on" "$work/song.lagwise" 1 2 3 | tee "$work/played"
if grep -E 'Torch|hwy' "$work/runtime/CMakeCache.txt"; then
  fail "the component runtime looks for more than itself"
fi
if readelf -d "$(find "$work/moved" -name 'liblagwise_runtime.so')" | grep NEEDED |
  grep -vE 'libstdc\+\+|libm\.|libgcc_s|libc\.|ld-linux'; then
  fail "the runtime library needs the libraries above"
fi
if ls "$work"/moved/bin/lagwise-run >/dev/null 2>&1; then
  mkdir "$work/bare"
  cp "$work/moved/bin/lagwise-run" "$work/song.lagwise" "$work/bare"
  if readelf -d "$work/bare/lagwise-run" | grep NEEDED; then
    fail "lagwise-run needs the libraries above"
  fi
  (cd "$work/bare" && env -i ./lagwise-run song.lagwise --prompt "1 2 3" --length 20)
fi

echo "-- pkg-config"
PKG_CONFIG_PATH=$(dirname "$(find "$work/moved" -name lagwise.pc)")
export PKG_CONFIG_PATH
pkg-config --cflags --libs lagwise
# shellcheck disable=SC2046  # flags are words
c++ "$root/examples/kernels_only.cpp" -o "$work/by_pc" \
  $(pkg-config --cflags --libs lagwise-kernels)
"$work/by_pc"
# The library twice: shared, and static.
# shellcheck disable=SC2046
cc -std=c99 -Wall -Wextra -pedantic "$root/examples/play_on.c" -o "$work/c_shared" \
  $(pkg-config --cflags --libs lagwise-runtime)
LD_LIBRARY_PATH=$(pkg-config --variable=libdir lagwise-runtime) \
  "$work/c_shared" "$work/song.lagwise" 1 2 3 | cmp - "$work/played"
# shellcheck disable=SC2046
cc "$root/examples/play_on.c" -o "$work/c_static" $(pkg-config --cflags lagwise-runtime) \
  -L"$(pkg-config --variable=libdir lagwise-runtime)" -l:liblagwise_runtime.a -lstdc++ -lm -lpthread
"$work/c_static" "$work/song.lagwise" 1 2 3 | cmp - "$work/played"
case "$(pkg-config --cflags --libs lagwise)" in
  *"$work/moved"*-llagwise*) ;;
  *) fail "lagwise.pc does not point into the moved tree" ;;
esac
