// What of a folder is not read is said, by `lagwise data` and by `lagwise train`.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lagwise/cli/testing_program.h"
#include "lagwise/cli/verbs.h"
#include "lagwise/data/formats/grey_png.h"
#include "lagwise/data/formats/smf.h"
#include "lagwise/data/music/grooves.h"
#include "lagwise/data/testing_files.h"

namespace lagwise::cli {
namespace {

using namespace lagwise::testing;
using ::testing::HasSubstr;

struct LeftOut : ::testing::Test {
  const TempFolder folder;

  std::string run(const std::vector<std::string>& words) {
    const Outcome outcome = run_captured({verb("data"), verb("train")}, words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.out;
  }
  std::string train(const std::string& task, const std::string& path) {
    put(folder / "r.toml",
        "[model]\nlayers = 1\ndim = 16\nheads = 2\nencoding = \"none\"\n[data]\n"
        "task = \"" +
            task + "\"\npath = \"" + path +
            "\"\nlength = 16\n[train]\nsteps = 1\nbatch = 2\nwarmup = 1\nthreads = 1\n"
            "eval_examples = 1\n");
    return run({"train", folder / "r.toml", "--out", folder / "run"});
  }
};

TEST_F(LeftOut, ArePicturesThatLieElsewhere) {
  const std::string picture = data::grey_png({2, 2, {1, 2, 3, 4}});
  for (const char* name : {"cat/1.png", "dog/1.png", "dog/old/2.png", "dog/old/3.png"})
    put(folder / "p/" + name, picture);
  put(folder / "p/dog/4.gif", "GIF89a");
  for (const std::string& said :
       {run({"data", "images", folder / "p", "--out", folder / "set"}),
        train("images", folder / "p")}) {
    EXPECT_THAT(said, HasSubstr("left out: 1, files that are neither PNG nor JPEG, "
                                "such as dog/4.gif\n"));
    EXPECT_THAT(said, HasSubstr("left out: 2, pictures that do not lie in the folder "
                                "of a class itself, such as dog/old/2.png\n"));
  }
}

TEST_F(LeftOut, AreMidiFilesThatAreDamaged) {
  std::filesystem::create_directories(folder / "m");
  for (const int song : {1, 2, 3})
    data::write_smf(folder / ("m/" + std::to_string(song) + ".mid"),
                    data::Grooves().song(song));
  put(folder / "m/b.mid", "no music");
  put(folder / "m/c.mid", "");
  EXPECT_THAT(train("music", folder / "m"),
              HasSubstr("left out: 2, damaged MIDI files, such as " +
                        folder / "m/b.mid" + ", byte 0: expected "));
}

}  // namespace
}  // namespace lagwise::cli
