#include "lagwise/train/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "lagwise/core/errors.h"
#include "lagwise/data/testing_files.h"
#include "lagwise/models/model.h"
#include "lagwise/models/testing_models.h"

namespace lagwise {
namespace {

using namespace lagwise::testing;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

struct Trained {
  explicit Trained(int64_t dim = 16, const std::string& encoding = "sine_spe") {
    state.model = small_model("decoder_lm", encoding, kNormalised);
    state.model.dim = dim;
    state.step = 40, state.tokens = 12345, state.seconds = 1.5, state.threads = 2;
    state.best = {30, 0.25};
    state.pending = {.loss = 3.25, .targets = 7, .tokens = 9, .seconds = 0.125};
    state.words = {"a", "\"b\"", "ü"};
    state.tokenizer = "{\"model\": {}}\n", state.class_names = {"good", "bad"};
    state.data_hash = 0xfedcba9876543210u;
    state.recipe = "title = \"x\"\n";
    model = make_model(state.model);
    optimiser = std::make_unique<AdamW>(trained_parameters(*model));
    for (const NamedTensor& one : optimiser->state()) {
      const auto count = one.tensor.numel();
      one.tensor.copy_(at::arange(count, at::kFloat).sin().view(one.tensor.sizes()));
    }
  }
  TrainerState state;
  std::shared_ptr<Model> model;
  std::unique_ptr<AdamW> optimiser;
};

/// Reads all of a checkpoint into something of the same shape.
void read_all(const Checkpoints& from, int64_t step, const Trained& into) {
  from.read_state(step);
  from.read_model(step, into.optimiser->parameters());
  from.read_optimiser(step, *into.optimiser);
}

TEST(Checkpoint, BringsBackEveryBitOfARun) {
  const TempFolder scratch;
  const Trained saved;
  Checkpoints checkpoints(scratch / "run");
  EXPECT_EQ(checkpoints.steps(), std::vector<int64_t>());
  checkpoints.save(saved.state, *saved.optimiser);
  EXPECT_EQ(checkpoints.steps(), std::vector<int64_t>{40});

  Trained other;
  for (const NamedTensor& one : other.optimiser->parameters())
    one.tensor.detach().fill_(NAN);
  read_all(checkpoints, 40, other);
  for (size_t i = 0; i < saved.optimiser->parameters().size(); ++i)
    EXPECT_TRUE(other.optimiser->parameters()[i].tensor.equal(
        saved.optimiser->parameters()[i].tensor));
  for (size_t i = 0; i < saved.optimiser->state().size(); ++i)
    EXPECT_TRUE(
        other.optimiser->state()[i].tensor.equal(saved.optimiser->state()[i].tensor));

  TrainerState state = checkpoints.read_state(40);
  EXPECT_EQ(state.files.size(), 2u);
  state.files = {};
  EXPECT_EQ(state_text(state), state_text(saved.state));
  EXPECT_EQ(state.best.value().value, 0.25);
  EXPECT_EQ(state.data_hash, saved.state.data_hash);
  EXPECT_EQ(state.words, saved.state.words);
  EXPECT_EQ(state.tokenizer, saved.state.tokenizer);
  EXPECT_EQ(state.class_names, saved.state.class_names);
  EXPECT_EQ(state.pending.loss, 3.25);
}

TEST(Checkpoint, CutShortAnywhereIsRefused) {
  const TempFolder scratch;
  const Trained saved;
  Checkpoints checkpoints(scratch / "run");
  checkpoints.save(saved.state, *saved.optimiser);
  const Trained other;
  for (const char* name :
       {"model.safetensors", "optimizer.safetensors", "state.json"}) {
    const std::string file = checkpoints.folder(40) + "/" + name;
    const std::string whole = contents(file);
    const size_t stride = std::max<size_t>(whole.size() / 300, 1);
    int tried = 0;
    for (size_t size = 0; size < whole.size(); size += size < 64 ? 1 : stride) {
      // The last byte of state.json ends its last line, and nothing else.
      if (size + 1 == whole.size() && whole.back() == '\n') break;
      put(file, whole.substr(0, size));
      EXPECT_THROW(read_all(checkpoints, 40, other), DataError) << name << " " << size;
      ++tried;
    }
    EXPECT_GT(tried, 200);
    put(file, whole);
  }
  read_all(checkpoints, 40, other);
}

TEST(Checkpoint, NoticesOneFlippedBitInAnyFile) {
  const TempFolder scratch;
  const Trained saved;
  Checkpoints checkpoints(scratch / "run");
  checkpoints.save(saved.state, *saved.optimiser);
  EXPECT_FALSE(checkpoints.damage(40));
  const Trained other;
  for (const char* name :
       {"model.safetensors", "optimizer.safetensors", "state.json"}) {
    const std::string file = checkpoints.folder(40) + "/" + name;
    const std::string whole = contents(file);
    // Not the end of state.json: that is its hash, and what holds it.
    const size_t end = whole.size() - (whole.back() == '\n' ? 40 : 0);
    for (size_t at = 0; at < end; at += end / 60) {
      std::string flipped = whole;
      flipped[at] = static_cast<char>(flipped[at] ^ 1 << at % 8);
      put(file, flipped);
      const std::string message = data_error([&] { read_all(checkpoints, 40, other); });
      EXPECT_THAT(message, HasSubstr(file)) << at;
      ASSERT_TRUE(checkpoints.damage(40)) << at;
      EXPECT_EQ(checkpoints.damage(40).value().what(), message);
    }
    put(file, whole);
  }
  read_all(checkpoints, 40, other);
}

TEST(Checkpoint, TakesOnAnotherState) {
  const TempFolder scratch;
  const Trained saved;
  Checkpoints checkpoints(scratch / "run");
  checkpoints.save(saved.state, *saved.optimiser);
  TrainerState state = saved.state;
  state.best = {40, 0.125}, state.judged = false;
  checkpoints.update(state);
  EXPECT_FALSE(checkpoints.damage(40));
  EXPECT_EQ(checkpoints.read_state(40).best.value().step, 40);
  EXPECT_FALSE(checkpoints.read_state(40).judged);
}

TEST(Checkpoint, OfAnotherShapeSaysWhatDiffers) {
  const TempFolder scratch;
  const Trained saved(32, "learned");
  Checkpoints checkpoints(scratch / "run");
  checkpoints.save(saved.state, *saved.optimiser);
  const Trained other(16);
  const std::string message =
      data_error([&] { checkpoints.read_model(40, other.optimiser->parameters()); });
  EXPECT_THAT(message, HasSubstr("embed.weight [11, 16], in the file [11, 32]"));
  EXPECT_THAT(message, HasSubstr("missing in the file: pos.frequencies"));
  EXPECT_THAT(message, HasSubstr("only in the file: pos."));
  EXPECT_THAT(message, HasSubstr("more"));
  EXPECT_EQ(message.find('\n'), std::string::npos);
}

TEST(Checkpoint, OfAnotherStepIsRefused) {
  const TempFolder scratch;
  Trained saved;
  Checkpoints checkpoints(scratch / "run");
  checkpoints.save(saved.state, *saved.optimiser);
  fs::rename(checkpoints.folder(40), checkpoints.folder(50));
  EXPECT_THAT(data_error([&] { checkpoints.read_state(50); }),
              HasSubstr("expected the state of step 50"));
  EXPECT_THAT(
      data_error([&] { checkpoints.read_model(50, saved.optimiser->parameters()); }),
      HasSubstr("expected tensors of step 50"));
}

TEST(Checkpoint, LeavesTheOneBeforeWhateverCallFails) {
  const Trained saved;
  Trained next;
  next.state.step = 50;
  int64_t calls_needed = 0;
  for (int64_t failing = 0; failing <= calls_needed; ++failing) {
    const TempFolder scratch;
    Checkpoints(scratch / "run").save(saved.state, *saved.optimiser);
    int64_t call = 0;
    const auto fails = [&] {
      errno = ENOSPC;
      return ++call == failing;
    };
    data::FileCalls calls;
    calls.write = [&](int file, const void* bytes, size_t count) {
      return fails() ? ssize_t{-1} : ::write(file, bytes, count);
    };
    calls.sync = [&](int file) { return fails() ? -1 : fsync(file); };
    calls.rename = [&](const char* from, const char* to) {
      return fails() ? -1 : std::rename(from, to);
    };
    Checkpoints checkpoints(scratch / "run", calls);
    if (failing == 0) {  // counts the calls
      checkpoints.save(next.state, *next.optimiser);
      calls_needed = call;
      continue;
    }
    EXPECT_THROW(checkpoints.save(next.state, *next.optimiser), std::runtime_error);
    // The sync of the parent fails after the new one is whole.
    const bool in_place = failing == calls_needed;
    EXPECT_EQ(checkpoints.steps(),
              in_place ? std::vector<int64_t>({40, 50}) : std::vector<int64_t>({40}));
    read_all(checkpoints, 40, next);
    EXPECT_FALSE(fs::exists(checkpoints.folder(50) + ".tmp"));
  }
  EXPECT_GT(calls_needed, 40);
}

TEST(Checkpoint, PassesOverAndRemovesWhatIsUnfinished) {
  const TempFolder scratch;
  const Trained saved;
  Checkpoints checkpoints(scratch / "run");
  checkpoints.save(saved.state, *saved.optimiser);
  put(checkpoints.folder(60) + ".tmp/model.safetensors", "half");
  put(scratch / "run/checkpoints/notes", "mine");
  EXPECT_EQ(checkpoints.steps(), std::vector<int64_t>{40});
  checkpoints.prune({40});
  EXPECT_EQ(checkpoints.steps(), std::vector<int64_t>{40});
  EXPECT_FALSE(fs::exists(checkpoints.folder(60) + ".tmp"));
  EXPECT_TRUE(fs::exists(scratch / "run/checkpoints/notes"));
  checkpoints.prune({});
  EXPECT_EQ(checkpoints.steps(), std::vector<int64_t>());
}

TEST(Checkpoint, StateOfAnotherKindIsRefusedByName) {
  const Trained saved;
  const std::string text = state_text(saved.state);
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string other = text;
    const size_t at = other.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    other.replace(at, from.size(), to);
    // Without its hash: as earlier versions wrote it.
    other.replace(other.rfind(",\n \"fnv1a\""), other.npos, "\n}\n");
    return data_error([&] { parse_state("s.json", other); });
  };
  EXPECT_EQ(with("\"tokens\": 12345", "\"tokens\": \"many\""),
            "s.json: expected an entry 'tokens' as lagwise writes it");
  EXPECT_EQ(with("\"layers\": 2", "\"layers\": -2"),
            "s.json: expected an entry 'model.layers' as lagwise writes it");
  EXPECT_EQ(with("\"best\": {", "\"bes\": {"), "(no error)");  // none yet
  EXPECT_EQ(with("\"fedcba9876543210\"", "\"fedc\""),
            "s.json: expected an entry 'data_hash' as lagwise writes it");
}

}  // namespace
}  // namespace lagwise
