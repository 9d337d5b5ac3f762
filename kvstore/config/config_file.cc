// Walks over the settings of the file and asks the table of fields about each.
#include "kvstore/config/config_file.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "kvstore/config/config_fields.h"
#include "kvstore/config/quantity.h"
#include "kvstore/toml/toml_settings.h"

namespace cairn::kv {
namespace {

constexpr size_t kFileSizeMax = 1 * kMiB;

struct Mistake {
  uint64_t line = 0;
  std::string text;
};

using Kind = TomlSetting::Kind;

class Reader {
 public:
  explicit Reader(DaemonConfig& config) : config_(config) {}

  void ReadAll(const std::vector<TomlSetting>& settings) {
    std::string done;  // What is within it was told of with it.
    for (const TomlSetting& setting : settings) {
      if (!done.empty() && setting.key.starts_with(done)) continue;
      done.clear();
      const bool is_section = setting.kind == Kind::kTable && FindField(setting.key) == nullptr;
      if (is_section && ReadSection(setting)) continue;
      if (!is_section) ReadField(setting);
      done = setting.key + ".";
    }
  }

  // Sorted by line, one a line.
  std::string Mistakes(const std::string& name) {
    std::stable_sort(mistakes_.begin(), mistakes_.end(),
                     [](const Mistake& a, const Mistake& b) { return a.line < b.line; });
    std::string text;
    for (const Mistake& mistake : mistakes_) {
      text.append(text.empty() ? "" : "\n").append(name).append(":");
      text.append(std::to_string(mistake.line)).append(": ").append(mistake.text);
    }
    return text;
  }

 private:
  // False when there is none of that name.
  bool ReadSection(const TomlSetting& setting) {
    const auto sections = ConfigSections();
    const bool known = std::any_of(sections.begin(), sections.end(), [&](const ConfigSection& s) {
      return s.name == setting.key;
    });
    if (known) return true;
    std::string names;
    for (const ConfigSection& section : sections) {
      names.append(names.empty() ? "" : ", ").append(section.name);
    }
    mistakes_.push_back({setting.line, "there is no section [" + setting.key +
                                           "]; the sections are: " + names});
    return false;
  }

  void ReadField(const TomlSetting& setting) {
    const ConfigField* field = FindField(setting.key);
    if (field == nullptr) {
      std::string text = setting.key + " is not a setting";
      const std::string_view nearest = NearestKey(setting.key);
      if (!nearest.empty()) text.append("; did you mean ").append(nearest).append("?");
      mistakes_.push_back({setting.line, std::move(text)});
      return;
    }
    const Status status = Set(*field, setting);
    if (!status.ok()) mistakes_.push_back({setting.line, setting.key + ": " + status.message()});
  }

  Status Set(const ConfigField& field, const TomlSetting& setting) {
    const bool number = field.kind == FieldKind::kCount || field.kind == FieldKind::kReal;
    const bool quantity = field.kind == FieldKind::kBytes || field.kind == FieldKind::kDuration;
    if (setting.kind == Kind::kText) {
      if (field.kind == FieldKind::kFlag) return Wrong("write true or false, without quotes");
      if (number) return Wrong("write the number without quotes");
      return field.set(config_, setting.value);
    }
    const bool fits = (setting.kind == Kind::kFlag && field.kind == FieldKind::kFlag) ||
                      (setting.kind == Kind::kInteger && (number || quantity)) ||
                      (setting.kind == Kind::kReal && field.kind == FieldKind::kReal);
    const bool lacks_unit = quantity && setting.value != "0";
    return fits && !lacks_unit ? field.set(config_, setting.value) : WrongType(field);
  }

  static Status Wrong(std::string message) { return Status(Code::kInvalid, std::move(message)); }

  static Status WrongType(const ConfigField& field) {
    switch (field.kind) {
      case FieldKind::kBytes: return Wrong("write a size with its unit in quotes, as \"64 MiB\"");
      case FieldKind::kDuration: return Wrong("write a time with its unit in quotes, as \"5 s\"");
      case FieldKind::kFlag: return Wrong("write true or false");
      case FieldKind::kCount: return Wrong("write a whole number");
      case FieldKind::kReal: return Wrong("write a number");
      case FieldKind::kText:
      case FieldKind::kChoice: return Wrong("write a text in quotes");
    }
    return Wrong("is of the wrong type");
  }

  DaemonConfig& config_;
  std::vector<Mistake> mistakes_;
};

std::string TomlString(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted.push_back('\\');
    quoted.push_back(c);
  }
  return quoted.append("\"");
}

std::string TomlValue(const ConfigField& field, const DaemonConfig& config) {
  const std::string value = field.get(config);
  const bool bare = field.kind == FieldKind::kFlag || field.kind == FieldKind::kCount ||
                    field.kind == FieldKind::kReal;
  return bare ? value : TomlString(value);
}

// `text` as comment lines of at most 96 columns.
void AppendComment(std::string_view text, std::string& out) {
  size_t column = 0;
  while (!text.empty()) {
    const size_t space = std::min(text.find(' '), text.size());
    if (column == 0 || column + 1 + space > 96) {
      out.append(column == 0 ? "#" : "\n#");
      column = 1;
    }
    out.append(" ").append(text.substr(0, space));
    column += 1 + space;
    text.remove_prefix(std::min(space + 1, text.size()));
  }
  out.append("\n");
}

std::string RangeOf(const ConfigField& field) {
  if (field.kind == FieldKind::kChoice) {
    std::string range = " One of:";
    for (const std::string_view choice : field.choices) {
      range.append(range.ends_with(':') ? " " : ", ").append(choice);
    }
    return range + ".";
  }
  if (field.min == field.max) return "";
  const auto format = [&](int64_t value) {
    if (field.kind == FieldKind::kBytes) return FormatBytes(static_cast<uint64_t>(value));
    if (field.kind == FieldKind::kDuration) return FormatDuration({value});
    return std::to_string(value);
  };
  return " (" + format(field.min) + " to " + format(field.max) + ")";
}

}  // namespace

Status ApplyToml(std::string_view text, const std::string& name, DaemonConfig& config) {
  KV_ASSIGN_OR_RETURN(const std::vector<TomlSetting> settings, ReadToml(text, name));
  Reader reader(config);
  reader.ReadAll(settings);
  std::string mistakes = reader.Mistakes(name);
  return mistakes.empty() ? Status() : Status(Code::kInvalid, std::move(mistakes));
}

Status ApplyFile(const std::string& path, DaemonConfig& config) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) {
    const Code code = errno == ENOENT ? Code::kNotFound : Code::kInvalid;
    return Status(code, path + ": cannot open it: " + std::strerror(errno));
  }
  std::string text(kFileSizeMax + 1, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  const bool failed = std::ferror(file) != 0;
  std::fclose(file);
  if (failed) return Status(Code::kInvalid, path + ": cannot read it (is it a file?)");
  if (text.size() > kFileSizeMax) {
    return Status(Code::kInvalid, path + ": is larger than 1 MiB: that is no configuration");
  }
  return ApplyToml(text, path, config);
}

std::string ToToml(const DaemonConfig& config) {
  std::string out =
      "# Configuration of cairnd. Every setting is here with its default; leave out what you do\n"
      "# not change. `cairnd --check-config FILE` checks a file, `cairnd --print-config` prints\n"
      "# this one. Sizes and times are texts with a unit: \"64 MiB\", \"250 ms\".\n";
  for (const ConfigSection& section : ConfigSections()) {
    out.append("\n");
    AppendComment(section.help, out);
    out.append("[").append(section.name).append("]\n");
    for (const ConfigField& field : ConfigFields()) {
      const size_t dot = field.key.find('.');
      if (field.key.substr(0, dot) != section.name) continue;
      AppendComment(std::string(field.help) + RangeOf(field), out);
      out.append(field.key.substr(dot + 1)).append(" = ");
      out.append(TomlValue(field, config)).append("\n");
    }
  }
  return out;
}

}  // namespace cairn::kv
