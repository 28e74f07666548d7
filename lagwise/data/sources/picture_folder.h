#pragma once

#include <string>

#include "lagwise/data/sources/image_examples.h"

namespace lagwise::data {

/// Whether a folder holds pictures by class: a folder for each, with .png, .jpg or
/// .jpeg in it, or train and such folders in that.
bool is_picture_folder(const std::string& path);

/// Reads them. The folders' names are the classes, in their order; files are read in
/// the order of their names. Splits are the folders train, valid (or val, dev) and
/// test; where there is no valid, an evenly spread part of train is, and where there is
/// no train all are dealt (data/sets/split_dealer.h). Pictures are square and of one size,
/// or `size` makes them so. DataError names the file.
ImageShape read_picture_folder(const ImageReading& reading, const VisitExample& visit);

/// The numbers of one picture, a PNG or a JPEG; where it is no square of `side` pixels,
/// of the square in its middle, made so wide.
std::vector<int32_t> picture_numbers(const std::string& name, Bytes bytes, int64_t side,
                                     int64_t patch, bool colour);

}  // namespace lagwise::data
