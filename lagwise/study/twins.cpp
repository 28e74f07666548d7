#include "lagwise/study/twins.h"

#include "lagwise/train/past.h"

namespace lagwise {

bool trains_with_past(const Recipe& recipe) {
  return PastMultiples(recipe.train.past).any();
}

std::string twin_key(const Recipe& recipe) {
  Recipe shared = recipe;
  shared.title.clear();
  shared.train.past = "0", shared.train.seed = 0, shared.train.lr = 0;
  return recipe_text(shared);
}

}  // namespace lagwise
