// `lagwise data images`: images as sequences of pixels.

#include <fmt/format.h>

#include <memory>

#include "lagwise/cli/checks.h"
#include "lagwise/cli/data/prepared_set.h"
#include "lagwise/cli/verbs.h"
#include "lagwise/data/sources/picture_folder.h"

namespace lagwise::cli {
namespace {

struct ImagesFlags {
  std::string out;
  data::ImageReading reading;
};

void prepare_images(const ImagesFlags& flags) {
  std::vector<std::string> left_out;
  prepare_examples(
      {.out = flags.out,
       .task = "images",
       .classes = data::picture_classes(flags.reading.path) > 0 ? 1000 : 10,
       .manifest = {"images from " + flags.reading.path, "images", 256, {}, {}}},
      [&](data::ExampleWriter& writer, const data::VisitExample& visit) {
        const data::ImageShape shape = data::read_image_examples(flags.reading, visit);
        left_out = shape.left_out;
        if (!shape.classes.empty()) writer.note_classes(shape.classes);
        writer.note("side", shape.side);
        writer.note("per_row", shape.per_row);
        writer.note("patch", flags.reading.patch);
        writer.note("colour", flags.reading.colour ? 1 : 0);
      });
  for (const std::string& line : left_out) fmt::print("{}\n", line);
}

void add_data_images(CLI::App& verb) {
  CLI::App* app = verb.add_subcommand(
      "images",
      "Images as sequences of pixels: PNG or JPEG by class, CIFAR-10 (binary), MNIST");
  const auto flags = std::make_shared<ImagesFlags>();
  add_path(*app, flags->reading.path, "The folder with the files")->required();
  add_out(*app, flags->out);
  app->add_option("--patch", flags->reading.patch,
                  "The side of a square of pixels that becomes one row")
      ->check(whole_number(1, 64))
      ->capture_default_str()
      ->type_name("N");
  app->add_flag("--colour", flags->reading.colour,
                "Red, green and blue instead of grey; not of MNIST");
  app->add_option(
         "--size", flags->reading.size,
         "Pictures in folders: cut to the square in the middle, so many pixels "
         "wide; as they are unless given")
      ->check(whole_number(1, 1024))
      ->type_name("N");
  add_part(*app, "--valid", flags->reading.valid,
           "The part of train to validate on: its end, or of pictures in folders "
           "evenly spread");
  add_part(*app, "--test", flags->reading.test,
           "The part of pictures in folders without splits to test on");
  app->callback([flags] { prepare_images(*flags); });
}

const RegisterVerb data_images_registered({.name = "data images",
                                           .place = 3,
                                           .add = add_data_images});

}  // namespace
}  // namespace lagwise::cli
