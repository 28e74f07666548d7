#pragma once

#include <string>
#include <vector>

#include "lagwise/data/sets/examples.h"

namespace lagwise::data {

struct ImageReading {
  std::string path;
  int64_t patch = 1;    ///< side of a square of pixels that becomes one row
  bool colour = false;  ///< red, green and blue instead of grey
  double valid = 0.1;   ///< the last of train, as in the Long Range Arena; of pictures
                        ///<   in folders a part that is dealt
  double test = 0.1;    ///< of pictures in folders without splits
  int64_t size = 0;     ///< of pictures in folders: cut to the square in the middle and
                        ///<   made so many pixels wide; 0: left as they are
};

/// How the numbers of an image are arranged.
struct ImageShape {
  int64_t side = 0;     ///< in rows: pixels / patch
  int64_t per_row = 1;  ///< numbers that make one row: patch^2 channels
  std::vector<std::string> classes = {};   ///< their names; empty: ten numbers
  std::vector<std::string> left_out = {};  ///< of a folder: data/sets/left_out.h
};

/// Reads labelled images, a pixel's brightness (0 to 255) as token:
///
///     data_batch_<n>.bin, test_batch.bin                       CIFAR-10, 32 x 32
///     {train,t10k}-{images-idx3,labels-idx1}-ubyte, or .gz     MNIST, 28 x 28
///     CLASS/*.png, .jpg; or train/CLASS/.., test/CLASS/..      data/sources/picture_folder.h
///
/// `first` holds patch after patch in rows of patches, in each its pixels row by row,
/// in each pixel its channels. Returns the shape. DataError names what is wrong with
/// the files; std::invalid_argument a patch that does not divide the side.
ImageShape read_image_examples(const ImageReading& reading, const VisitExample& visit);

/// Planes [channels, side, side] in the order said above.
std::vector<int32_t> image_patches(Bytes planes, int64_t side, int64_t patch);

/// std::invalid_argument, which begins with the task's name, for a patch that does not
/// divide the side.
void check_patch(const std::string& task, int64_t patch, int64_t side);

}  // namespace lagwise::data
