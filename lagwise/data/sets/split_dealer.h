#pragma once

#include <cstdint>
#include <string>

#include "lagwise/core/noise.h"

namespace lagwise::data {

/// Deals examples to train, valid and test where files give no splits. Stretch k of a
/// fraction f is the examples i with floor(i f) = k, and gives one of them away, so that
/// the fractions hold for any part of a file. Which one depends on k alone, but as if by
/// chance: of a table whose labels take turns, every tenth row would be of one label.
/// What valid does not take is dealt with the fraction test / (1 - valid) likewise.
class SplitDealer {
 public:
  SplitDealer(double valid, double test);

  std::string next() {
    if (valid_.takes_next()) return "valid";
    return test_.takes_next() ? "test" : "train";
  }

 private:
  /// One example of every stretch.
  class Share {
   public:
    Share(double fraction, const NoiseRow& places)
        : fraction_(fraction), places_(places) {}
    bool takes_next();

   private:
    void begin_stretch();

    double fraction_;
    NoiseRow places_;  // by the number of the stretch: where in it, from 0 to 1
    int64_t at_ = 0, end_ = 0, taken_ = 0;  // the next example; of the stretch
  };

  Share valid_, test_;
};

}  // namespace lagwise::data
