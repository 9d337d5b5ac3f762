// The configuration file: what is read, every kind of mistake with its line, and the example.
#include "kvstore/config/config_file.h"

#include <gmock/gmock.h>

#include <fstream>
#include <set>
#include <sstream>

#include "kvstore/config/config_fields.h"

namespace cairn::kv {
namespace {

using testing::HasSubstr;

TEST(ConfigFields, EachHasItsSectionItsHelpAndADefaultThatReadsBack) {
  std::set<std::string_view> keys, sections;
  for (const ConfigSection& section : ConfigSections()) sections.insert(section.name);
  for (const ConfigField& field : ConfigFields()) {
    EXPECT_TRUE(keys.insert(field.key).second) << field.key << " is there twice";
    EXPECT_TRUE(sections.contains(field.key.substr(0, field.key.find('.')))) << field.key;
    EXPECT_TRUE(field.help.ends_with('.')) << field.key;
    DaemonConfig config;
    const std::string value = field.get(config);
    EXPECT_TRUE(field.set(config, value).ok()) << field.key << " = " << value;
    EXPECT_EQ(field.get(config), value) << field.key;
  }
}

// A value of the field that is not its default.
std::string OtherValue(const ConfigField& field) {
  const DaemonConfig config;
  const std::string value = field.get(config);
  switch (field.kind) {
    case FieldKind::kFlag: return value == "true" ? "false" : "true";
    case FieldKind::kChoice: return std::string(field.choices[value == field.choices[0] ? 1 : 0]);
    case FieldKind::kText: return "other \"text\" \\ x";
    case FieldKind::kReal: return "2.5";
    case FieldKind::kCount: {
      const std::string lowest = std::to_string(field.min);
      const bool is_default = field.get(DaemonConfig()) == lowest;
      return is_default ? std::to_string(field.min + 1) : lowest;
    }
    case FieldKind::kBytes: return std::to_string(field.min + 4096) + " B";
    case FieldKind::kDuration: return std::to_string(field.min + 1) + " ns";
  }
  return "";
}

// Two rows that name the same member would show here: the second would undo the first.
TEST(ConfigFile, EverySettingSurvivesTheFile) {
  DaemonConfig config;
  for (const ConfigField& field : ConfigFields()) {
    ASSERT_TRUE(field.set(config, OtherValue(field)).ok()) << field.key;
  }
  DaemonConfig read;
  const Status status = ApplyToml(ToToml(config), "x", read);
  ASSERT_TRUE(status.ok()) << status.message();
  const DaemonConfig defaults;
  for (const ConfigField& field : ConfigFields()) {
    EXPECT_EQ(field.get(read), field.get(config)) << field.key;
    EXPECT_NE(field.get(read), field.get(defaults)) << field.key;
  }
}

TEST(ConfigFile, ASettingThatIsNotNamedStays) {
  DaemonConfig config;
  ASSERT_TRUE(ApplyToml("[store]\ntargets = 14\n", "x", config).ok());
  ASSERT_TRUE(ApplyToml("store.target_size = \"2 GiB\"\n", "x", config).ok());
  EXPECT_EQ(config.node.targets, 14u);
  EXPECT_EQ(config.node.target_bytes, 2 * kGiB);
  EXPECT_TRUE(ApplyToml("", "x", config).ok());
}

struct Mistake {
  const char* text;
  const char* message;
};

TEST(ConfigFile, MistakesAreToldWithLineAndRemedy) {
  const std::vector<Mistake> table = {
      {"\n[store]\ntarget = 12", "f:3: store.target is not a setting; did you mean store.targets?"},
      {"[store]\nqqqqqqqqqq = 1", "f:2: store.qqqqqqqqqq is not a setting"},
      {"[store]\nlevel = \"info\"", "did you mean log.level?"},
      {"targets = 1", "f:1: targets is not a setting; did you mean store.targets?"},
      {"[stores]\ntargets = 1", "f:1: there is no section [stores]; the sections are: store,"},
      {"[store]\ntargets = \"12\"", "store.targets: write the number without quotes"},
      {"[store]\ntargets = 0", "store.targets: '0' is out of range: write 1 to 100"},
      {"[store]\ntargets = 101", "write 1 to 100"},
      {"[store]\ntargets = -1", "write 1 to 100"},
      {"[store]\ntargets = 1.5", "write a whole number"},
      {"[store]\ntargets = [1]", "write a whole number"},
      {"[store]\ntargets = 2020-01-01", "write a whole number"},
      {"[store.targets]\nx = 1", "store.targets: write a whole number"},
      {"[store]\ntarget_size = 1073741824", "write a size with its unit in quotes, as \"64 MiB\""},
      {"[store]\ntarget_size = \"12\"", "'12' is not a size"},
      {"[store]\ntarget_size = \"1 MiB\"", "out of range: write 64 MiB to 1024 TiB"},
      {"[store]\ndata_dir = 3", "store.data_dir: write a text in quotes"},
      {"[store]\ndata_dir = \"a\\nb\"", "holds a control character"},
      {"[store]\nself_test = \"true\"", "write true or false, without quotes"},
      {"[store]\nself_test = 1", "write true or false"},
      {"[store]\ndrive_writes_per_day = 0.0", "out of range"},
      {"[store]\ndrive_writes_per_day = nan", "is not a number"},
      {"[upkeep]\norphan_age = 60", "write a time with its unit in quotes, as \"5 s\""},
      {"[io]\nengine = \"aio\"", "io.engine: 'aio' is not one of: auto, io_uring, epoll"},
      {"[log]\nlevel = true", "write a text in quotes"},
      {"[store]\ntargets = 1\ntargets = 2", "f:3:"},
      {"[store\n", "f:1:"},
      {"a = ", "f:1:"},
      {"\xff\xfe", "f:1:"}};
  for (const Mistake& mistake : table) {
    DaemonConfig config;
    const Status status = ApplyToml(mistake.text, "f", config);
    ASSERT_EQ(status.code(), Code::kInvalid) << mistake.text;
    EXPECT_THAT(status.message(), HasSubstr(mistake.message)) << mistake.text;
  }
}

TEST(ConfigFile, AllMistakesAreToldAtOnceInOrder) {
  DaemonConfig config;
  const Status status =
      ApplyToml("[store]\ntargets = 0\n[io]\nengin = \"auto\"\nspin = 1\n", "f", config);
  EXPECT_EQ(status.message(),
            "f:2: store.targets: '0' is out of range: write 1 to 100\n"
            "f:4: io.engin is not a setting; did you mean io.engine?\n"
            "f:5: io.spin: write a time with its unit in quotes, as \"5 s\"");
}

TEST(ConfigFile, AFileThatCannotBeReadIsNamed) {
  DaemonConfig config;
  EXPECT_EQ(ApplyFile("/nonexistent/cairnd.toml", config).code(), Code::kNotFound);
  const Status folder = ApplyFile("/", config);
  EXPECT_EQ(folder.code(), Code::kInvalid);
  EXPECT_THAT(folder.message(), HasSubstr("/: cannot read it"));
}

// The example in deploy/ is the defaults: cairnd --print-config > deploy/cairnd.toml.
TEST(ConfigFile, TheExampleEqualsTheDefaults) {
  std::ifstream file(CAIRND_TOML);
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), ToToml(DaemonConfig())) << "write it anew: cairnd --print-config";
}

}  // namespace
}  // namespace cairn::kv
