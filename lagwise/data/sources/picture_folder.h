#pragma once

#include <cstddef>
#include <string>

#include "lagwise/data/sources/image_examples.h"

namespace lagwise::data {

/// How many classes the pictures of a folder have: a folder for each, with .png, .jpg or
/// .jpeg in it, or train and such folders in that. 0: they are not in such folders.
size_t picture_classes(const std::string& path);

/// Reads them. The folders' names are the classes, in their order; files are read in
/// the order of their names. Splits are the folders train, valid and test
/// (data/sets/split_file.h); where there is no valid, a part of train is dealt for it,
/// and where there is no train all are dealt (data/sets/split_dealer.h). Pictures are
/// square and of one size, or `size` makes them so.
///
/// Files that are no pictures and pictures elsewhere are left out, and the shape says so.
/// DataError names a file that is wrong, a class whose pictures are all in other formats,
/// and a folder beside train that holds pictures by class under the name of no split.
ImageShape read_picture_folder(const ImageReading& reading, const VisitExample& visit);

/// The numbers of one picture, a PNG or a JPEG; where it is no square of `side` pixels,
/// of the square in its middle, made so wide.
std::vector<int32_t> picture_numbers(const std::string& name, Bytes bytes, int64_t side,
                                     int64_t patch, bool colour);

}  // namespace lagwise::data
