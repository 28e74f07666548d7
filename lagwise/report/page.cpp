#include "lagwise/report/page.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "lagwise/report/base64.h"
#include "lagwise/report/page_files.h"

namespace lagwise::report {
namespace {

using Json = nlohmann::ordered_json;

/// Six digits: more than a picture shows, and a third of the bytes.
Json number(double x) {
  if (!std::isfinite(x)) return nullptr;
  if (std::abs(x) < 1e15 && x == std::floor(x)) return int64_t(x);
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", x);
  return std::strtod(text, nullptr);
}

Json numbers(const std::vector<double>& all) {
  Json array = Json::array();
  for (const double x : all) array.push_back(number(x));
  return array;
}

/// The images of all elements under to_json.
template <class T>
Json list(const std::vector<T>& all);

Json to_json(const Axis& axis) {
  return {{"label", axis.label}, {"log", axis.logarithmic}, {"format", axis.format}};
}

Json to_json(const Series& s) {
  Json json = {{"label", s.label}, {"x", numbers(s.x)}, {"y", numbers(s.y)}};
  if (!s.of.empty()) json["of"] = s.of;
  if (s.dashed) json["dashed"] = true;
  if (!s.low.empty()) json["low"] = numbers(s.low), json["high"] = numbers(s.high);
  return json;
}

Json to_json(const Chart& chart) {
  Json json = {{"title", chart.title},
               {"tab", chart.tab},
               {"across", to_json(chart.across)},
               {"up", to_json(chart.up)},
               {"series", list(chart.series)},
               {"note", chart.note}};
  if (chart.mark > 0) {
    json["mark"] = number(chart.mark);
    json["markLabel"] = chart.mark_label;
  }
  if (chart.clip) json["clip"] = true;
  return json;
}

Json to_json(const Column& column) {
  return {{"label", column.label},
          {"format", column.format},
          {"better", column.better},
          {"help", column.help}};
}

Json to_json(const Cell& cell) {
  if (!cell.text.empty()) return cell.text;
  return number(cell.number);
}

Json to_json(const std::vector<Cell>& row) { return list(row); }

Json to_json(const Sample& sample) {
  return {{"run", sample.run},
          {"prompt", sample.prompt},
          {"text", sample.text},
          {"note", sample.note}};
}

Json to_json(const RollNote& note) {
  return Json::array({number(note.start), number(note.end), note.pitch, note.velocity});
}

Json to_json(const RollTempo& tempo) {
  return Json::array({number(tempo.beat), number(tempo.beats_per_minute)});
}

Json to_json(const RollTrack& track) {
  return {{"name", track.name},
          {"program", track.program},
          {"drums", track.drums},
          {"notes", list(track.notes)}};
}

Json to_json(const Roll& roll) {
  Json json = {{"run", roll.run},
               {"prompt", number(roll.prompt_end)},
               {"trained", number(roll.trained_end)},
               {"beats", number(roll.beats)},
               {"bar", number(roll.beats_per_bar)},
               {"tempos", list(roll.tempos)},
               {"tracks", list(roll.tracks)},
               {"note", roll.note}};
  if (!roll.prompt_tokens.empty()) {
    json["tokens"] = roll.prompt_tokens;
    json["sampling"] = {{"temperature", number(roll.temperature)},
                        {"topP", number(roll.top_p)}};
  }
  return json;
}

Json to_json(const PlayOn& play_on) {
  return {{"run", play_on.run},
          {"module", base64(play_on.module)},
          {"model", base64(play_on.model)}};
}

Json to_json(const Music::Piece& piece) {
  return {{"title", piece.title}, {"rolls", list(piece.rolls)}};
}

Json to_json(const Paragraph& p) { return {{"kind", "paragraph"}, {"text", p.text}}; }

Json to_json(const Charts& charts) {
  return {
      {"kind", "charts"}, {"own", charts.own_colours}, {"charts", list(charts.tabs)}};
}

Json to_json(const Table& table) {
  return {{"kind", "table"},
          {"title", table.title},
          {"columns", list(table.columns)},
          {"rows", list(table.rows)},
          {"named", table.of_runs},
          {"note", table.note}};
}

Json to_json(const Samples& samples) {
  return {{"kind", "samples"},
          {"title", samples.title},
          {"samples", list(samples.samples)}};
}

Json to_json(const Music& music) {
  return {{"kind", "music"}, {"title", music.title}, {"pieces", list(music.pieces)}};
}

Json to_json(const Block& block) {
  return std::visit([](const auto& one) { return to_json(one); }, block);
}

Json to_json(const Section& section) {
  return {{"title", section.title},
          {"note", section.note},
          {"blocks", list(section.blocks)}};
}

template <class T>
Json list(const std::vector<T>& all) {
  Json array = Json::array();
  for (const T& one : all) array.push_back(to_json(one));
  return array;
}

/// `frame` with each @WORD@ of `parts` replaced; what was put in is not looked at
/// again.
std::string filled(std::string_view frame,
                   const std::vector<std::pair<std::string_view, std::string>>& parts) {
  std::string text;
  for (const auto& [word, part] : parts) {  // in the order of the frame
    const size_t at = frame.find(word);
    text += frame.substr(0, at);
    text += part;
    frame.remove_prefix(at + word.size());
  }
  return text + std::string(frame);
}

}  // namespace

std::string page_json(const Page& page) {
  Json json = {{"title", page.title},
               {"lede", page.lede},
               {"names", page.runs},
               {"sections", list(page.sections)},
               {"foot", page.foot}};
  if (page.play_on) json["playOn"] = to_json(*page.play_on);
  // ASCII, so that U+2028 and bytes that are no UTF-8 do no harm; and without '<',
  // which JSON has in strings alone, nothing can end the <script> it stands in.
  const std::string plain = json.dump(-1, ' ', true, Json::error_handler_t::replace);
  std::string safe;
  for (const char c : plain) {
    if (c == '<') {
      safe += "\\u003c";
    } else {
      safe += c;
    }
  }
  return safe;
}

std::string page_html(const Page& page) {
  return filled(page_frame(), {{"@TITLE@", escaped(page.title)},
                               {"@STYLE@", std::string(page_style())},
                               {"@DATA@", page_json(page)},
                               {"@SCRIPT@", std::string(page_script())}});
}

}  // namespace lagwise::report
