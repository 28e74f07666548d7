#pragma once

#include "lagwise/models/model.h"

namespace lagwise {

/// A model in evaluation mode for as long as this lives: no dropout.
class EvaluationMode {
 public:
  explicit EvaluationMode(Model& model)
      : model_(model), training_(model.is_training()) {
    model_.eval();
  }
  ~EvaluationMode() { model_.train(training_); }
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  Model& model_;
  bool training_;
};

}  // namespace lagwise
