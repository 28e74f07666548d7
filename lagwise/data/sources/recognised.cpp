#include "lagwise/data/sources/recognised.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>

#include "lagwise/core/errors.h"
#include "lagwise/data/formats/jsb.h"
#include "lagwise/data/formats/mapped_file.h"
#include "lagwise/data/formats/path_kind.h"
#include "lagwise/data/formats/picture.h"
#include "lagwise/data/music/music_corpus.h"
#include "lagwise/data/sets/language_corpus.h"
#include "lagwise/data/sets/text_file.h"
#include "lagwise/data/sources/pair_examples.h"
#include "lagwise/data/sources/picture_folder.h"
#include "lagwise/data/sources/split_tables.h"
#include "lagwise/data/sources/text_examples.h"
#include "lagwise/data/text/code_point.h"

namespace lagwise::data {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kUsualWindow = 256;  // data.length of the recipes for text

std::string counted(int64_t count, const std::string& one, const std::string& many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

/// "train 960, valid 120"
std::string by_split(const std::map<std::string, int64_t>& counts) {
  std::string text;
  for (const auto& [split, count] : counts)
    text += (text.empty() ? "" : ", ") + split + " " + std::to_string(count);
  return text;
}

/// Files about the data, which are none of it.
bool is_note(const fs::path& file) {
  const std::string name = file.filename().string();
  return name.starts_with("README") || name.starts_with("LICENSE") ||
         name.starts_with("COPYING") || file.extension() == ".md";
}

/// Archives and such; .gz is not among them, for readers unpack it.
bool is_packed_name(const fs::path& file) {
  constexpr const char* kEndings[] = {".tar", ".tgz", ".zip", ".xz",
                                      ".bz2", ".zst", ".7z",  ".rar"};
  return std::ranges::find(kEndings, file.extension()) != std::end(kEndings) ||
         file.stem().extension() == ".tar";
}

/// Whether a table has these columns: of a header, or of the first line of .jsonl.
bool has_columns(const std::string& file, const std::vector<Column>& columns) {
  try {
    TextColumns table(file, columns);
    std::vector<std::string> row;
    return !is_json_table_name(file) || table.next(row);
  } catch (const DataError&) {
    return false;
  }
}

/// Rows of text alone, without a label.
bool is_text_table(const std::string& file) {
  return is_json_table_name(file) && has_columns(file, {{"text", {}}}) &&
         !has_columns(file, {label_column("")});
}

/// "label id id text text", without a header, as AAN has it.
bool is_aan_table(const std::string& file) {
  if (!file.ends_with(".tsv")) return false;
  const MappedFile mapped(file);
  const std::string_view all = text_of(mapped.bytes());
  const std::string_view line = all.substr(0, all.find('\n'));
  return std::ranges::count(line, '\t') == 4 &&
         (line.starts_with('0') || line.starts_with('1'));
}

/// Whether the beginning of a file can be text.
bool begins_as_text(const std::string& file) {
  constexpr size_t kRead = 1 << 16;
  const MappedFile mapped(file);
  const std::string_view all = text_of(mapped.bytes());
  const std::string_view front = all.substr(0, kRead);
  return !front.empty() && front.find('\0') == front.npos && begins_as_utf8(all, kRead);
}

/// The longest of sequences `first`, `first` + `step`, .. of all splits.
int64_t longest(const ShardSet& set, int64_t first, int64_t step = 1) {
  int64_t longest = 0;
  for (const std::string& split : set.splits())
    for (int64_t i = first; i < set.split(split).sequences(); i += step)
      longest = std::max(longest, set.split(split).length(i));
  return longest;
}

/// One look.
class Look {
 public:
  explicit Look(const std::string& path) { found_.path = path; }

  Recognised at_all() {
    if (!is_there(found_.path))
      throw DataError(found_.path, -1, "a file or a folder; nothing is there");
    is_folder(found_.path) ? folder() : file();
    return std::move(found_);
  }

 private:
  std::string in(const std::string& name) const { return found_.path + "/" + name; }
  bool has(const std::string& name) const { return is_there(in(name)); }
  void say(const std::string& line) { found_.seen.push_back(line); }
  void none(const std::string& why) { found_.why = why; }

  void file() {
    const std::string& path = found_.path;
    if (is_midi_name(path)) {
      say("a MIDI file");
      return none("a folder of such files; one is a prompt for lagwise generate");
    }
    if (is_picture_name(path)) {
      say("a picture");
      return none("a folder of pictures for each class; one is for lagwise predict");
    }
    if (is_packed_name(path)) {
      say("a packed file");
      return packed();
    }
    if (is_table_name(path)) return table(path);
    if (path.ends_with(".json")) return chorales();
    if (!is_text_name(path) && !begins_as_text(path)) {
      say("a file of " + std::to_string(fs::file_size(path)) + " bytes");
      return none("text, a table, or a folder of music or pictures");
    }
    language();
  }

  void folder() {
    if (is_shard_set(found_.path)) return prepared();
    count_files();
    if (named_layout()) return;
    const std::vector<std::pair<int64_t, void (Look::*)()>> kinds = {
        {midi_, &Look::midi},
        {pictures_, &Look::pictures},
        {std::ssize(tables_), &Look::tables},
        {texts_, &Look::language},
        {packed_, &Look::packed}};
    const auto present =
        std::ranges::count_if(kinds, [](const auto& kind) { return kind.first > 0; });
    if (present == 0)
      return none("music, pictures, tables or texts, got none of these");
    if (present > 1) return none("files of one kind, got several");
    for (const auto& [count, tell] : kinds)
      if (count > 0) (this->*tell)();
  }

  void count_files() {
    std::error_code failed;
    int64_t others = 0;
    for (fs::recursive_directory_iterator at(found_.path, failed), end;
         !failed && at != end; at.increment(failed)) {
      const std::string name = at->path().string();
      if (is_folder(name)) continue;
      if (is_note(at->path())) {
        ++others;
        continue;
      }
      if (is_packed_name(at->path()))
        ++packed_;
      else if (is_midi_name(name))
        ++midi_;
      else if (is_picture_name(name))
        ++pictures_;
      else if (is_table_name(name))
        tables_.push_back(name);
      else if (is_text_name(name))
        ++texts_;
      else
        ++others;
    }
    if (failed)
      throw DataError(found_.path, -1, "a readable folder: " + failed.message());
    std::ranges::sort(tables_);
    if (midi_) say(counted(midi_, "MIDI file", "MIDI files"));
    if (pictures_) say(counted(pictures_, "picture", "pictures"));
    if (!tables_.empty()) say(counted(std::ssize(tables_), "table", "tables"));
    if (texts_) say(counted(texts_, "text", "texts"));
    if (packed_) say(counted(packed_, "packed file", "packed files"));
    if (others) say(counted(others, "other file", "other files"));
  }

  /// Sets that are known by the names of their files.
  bool named_layout() {
    const bool idx =
        has("train-images-idx3-ubyte") || has("train-images-idx3-ubyte.gz");
    if (idx || has("data_batch_1.bin")) {
      found_.kind = "images", found_.form = idx ? "mnist" : "cifar10";
      say(idx ? "the files of MNIST" : "the files of CIFAR-10");
    } else if (has("basic_train.tsv")) {
      found_.kind = "listops";
      say("the tables of ListOps");
    } else if (has("metadata") && has("imgs")) {
      found_.kind = "pathfinder";
      say("the folders of Pathfinder");
    } else if (has("train/pos") && has("train/neg")) {
      labelled();
    } else if (has("wiki.train.tokens") || has("wiki.train.raw")) {
      language();
    } else if (const std::string train = find_split_tables(found_.path).train;
               !train.empty()) {
      table(train);
    } else {
      return false;
    }
    return true;
  }

  void prepared() {
    const ShardSet set(found_.path);
    found_.kind = "set", found_.form = set.manifest().scheme;
    std::map<std::string, int64_t> sequences;
    for (const std::string& split : set.splits())
      sequences[split] = set.split(split).sequences();
    say("a prepared set of scheme " + found_.form);
    say("sequences: " + by_split(sequences));
    if (set.manifest().info.contains(kDocumentsKept))
      say("each is a document, kept apart from the others");
    // Only what fits into data.length is taken of these.
    if (found_.form == "listops") found_.length = longest(set, 0) - 1;  // the label
    if (found_.form == kPairsScheme)
      found_.length = std::max(longest(set, 0, 2), longest(set, 1, 2) + 1);
  }

  void midi() { found_.kind = "midi"; }
  void packed() { none("files as they are: unpack these first"); }

  void pictures() {
    const size_t classes = picture_classes(found_.path);
    if (classes < 2)
      return none(
          "a folder for each of two classes or more with its pictures in it, got " +
          std::to_string(classes));
    found_.kind = "images", found_.form = "folders";
  }

  void tables() {
    for (const std::string& one : tables_)
      if (one.ends_with("train.tsv") && is_aan_table(one)) {
        found_.kind = "retrieval";
        return say("tables of two texts and whether they belong together");
      }
    if (tables_.size() > 1 && std::ranges::all_of(tables_, is_text_table))
      return language();
    if (tables_.size() > 1)
      return none("one table, or those called train, valid and test");
    found_.path = tables_[0];
    table(found_.path);
  }

  /// By its columns; `file` is the path itself, or the table train in it.
  void table(const std::string& file) {
    std::vector<std::string> row;
    TextColumns(file, {}).next(row);  // what cannot be read as a table says why
    if (has_columns(file, {source_column(), target_column()})) return pairs();
    if (has_columns(file, {text_column(""), label_column("")})) return labelled();
    if (is_text_table(file)) return language();
    if (is_aan_table(file)) {
      found_.kind = "retrieval";
      return say("a table of two texts and whether they belong together");
    }
    say("a table");
    none("columns source and target, or text and label, in " + file);
  }

  void pairs() {
    std::map<std::string, int64_t> rows;
    size_t source = 0, target = 0;
    read_pairs({.path = found_.path}, [&](const Pair& pair) {
      ++rows[std::string(pair.split)];
      source = std::max(source, pair.source.size());
      target = std::max(target, pair.target.size());
    });
    found_.kind = "pairs";
    found_.length = static_cast<int64_t>(std::max(source, target + 1));
    say("pairs of texts: " + by_split(rows));
    say("the longest source has " + std::to_string(source) +
        " bytes, the longest target " + std::to_string(target));
  }

  void labelled() {
    std::map<std::string, int64_t> rows;
    const auto classes = read_text_examples(
        {.path = found_.path},
        [&](const std::string& split, const Example&, double) { ++rows[split]; });
    found_.kind = "text";
    say("labelled texts: " + by_split(rows));
    std::string names;
    for (size_t i = 0; i < classes.size() && i < 8; ++i)
      names += (i ? ", " : "") + classes[i].substr(0, 40);
    say(counted(std::ssize(classes), "label", "labels") + ": " + names +
        (classes.size() > 8 ? ", .." : ""));
  }

  void language() {
    const LanguageCorpus corpus(found_.path, 0.05, 0.05);
    std::map<std::string, int64_t> bytes;
    for (const std::string& split : corpus.splits()) bytes[split] = corpus.bytes(split);
    found_.kind = "language";
    say("text; bytes: " + by_split(bytes));
    int64_t documents = 0, shortest = std::numeric_limits<int64_t>::max();
    for (const auto& [split, many] : bytes) {
      documents += std::ssize(corpus.documents(split));
      shortest = std::min(shortest, many);
    }
    if (documents > 1)
      say(std::to_string(documents) +
          " documents, read as one text; `lagwise data language --documents` keeps "
          "them "
          "apart");
    if (shortest <= kUsualWindow) found_.length = std::max<int64_t>(shortest - 1, 1);
  }

  void chorales() {
    std::map<std::string, int64_t> many;
    try {
      for (const auto& [split, chorales] : read_jsb(found_.path))
        many[split] = std::ssize(chorales);
    } catch (const DataError&) {
      say("a file of JSON");
      return none("chorales as in Jsb16thSeparated.json; rows of text are .jsonl");
    }
    found_.kind = "harmonise";
    say("chorales: " + by_split(many));
  }

  Recognised found_;
  int64_t midi_ = 0, pictures_ = 0, texts_ = 0, packed_ = 0;
  std::vector<std::string> tables_;
};

}  // namespace

Recognised recognise(const std::string& path) { return Look(path).at_all(); }

}  // namespace lagwise::data
