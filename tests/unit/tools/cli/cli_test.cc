// A small parser, described: its tree, its manual page, its completions.
#include <gmock/gmock.h>

#include <CLI/CLI.hpp>

#include "tests/support/status_matchers.h"
#include "tools/cli/command_tree.h"
#include "tools/cli/completion.h"
#include "tools/cli/man_page.h"

namespace cairn::tools {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::HasCode;

class CliTest : public ::testing::Test {
 protected:
  CliTest() {
    app_.add_flag("-q,--quiet", quiet_, "say nothing");
    CLI::App* put = app_.add_subcommand("put", "store a file");
    put->add_option("NAME", name_, "of it")->required()->type_name("");
    put->add_option("FILE", file_, "from where")->type_name("");
    put->add_option("--size", size_, "at most")->type_name("BYTES")->capture_default_str();
    put->add_option("--mode", mode_, "how")->check(CLI::IsMember({"fast", "safe"}));
    put->add_option("--secret", mode_, "not for you")->group("");
    CLI::App* group = app_.add_subcommand("space", "spaces");
    group->add_subcommand("list", "it's a list: of \\ all");
    app_.add_subcommand("hidden", "not for you")->group("");
  }

  bool quiet_ = false;
  std::string name_, file_, mode_;
  int size_ = 5;
  CLI::App app_{"A program", "prog"};
};

TEST_F(CliTest, TheTreeHasWhatTheParserHas) {
  const CommandInfo tree = DescribeCommand(app_);
  ASSERT_EQ(tree.commands.size(), 2u);
  const CommandInfo& put = tree.commands[0];
  EXPECT_EQ(put.path, "prog put");
  EXPECT_EQ(Synopsis(put), "prog put [OPTIONS] NAME [FILE]");
  EXPECT_EQ(tree.commands[1].commands[0].path, "prog space list");
  std::vector<std::string> flags;
  for (const OptionInfo& option : put.options) {
    flags.insert(flags.end(), option.flags.begin(), option.flags.end());
    if (option.flags == std::vector<std::string>{"--size"}) {
      EXPECT_EQ(option.value, "BYTES");
      EXPECT_EQ(option.default_value, "5");
    }
    if (option.flags == std::vector<std::string>{"--mode"}) {
      EXPECT_THAT(option.choices, ElementsAre("fast", "safe"));
    }
  }
  EXPECT_THAT(flags, ElementsAre("-h", "--help", "--size", "--mode"));
}

TEST_F(CliTest, TheManualIsTroff) {
  ManPage page;
  page.version = "1";
  page.summary = "do things";
  page.description = {".starts with a dot", "A back\\slash and a-dash"};
  page.more = {{.title = "EXIT STATUS", .paragraphs = {"* 0: done.", "  an example"}}};
  const std::string text = ToMan(DescribeCommand(app_), page);
  for (const char* part :
       {".TH PROG 1", ".SH NAME\nprog \\- do things\n", ".PP\n\\&.starts",
        "back\\eslash and a\\-dash", ".SS \"prog put [OPTIONS] NAME [FILE]\"\n",
        "\\fB\\-\\-size\\fR \\fIBYTES\\fR",
        "Default: 5.", "One of: fast, safe.", ".SH \"EXIT STATUS\"\n.TP\n\\fB0\\fR\ndone.\n",
        ".nf\n.RS 4\nan example\n.RE\n.fi\n"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  EXPECT_THAT(text, Not(HasSubstr("hidden")));
  EXPECT_THAT(text, Not(HasSubstr("secret")));
}

TEST_F(CliTest, CompletionsOfEachShell) {
  const CommandInfo tree = DescribeCommand(app_);
  const std::string bash = CompletionScript(tree, "bash").value();
  EXPECT_THAT(bash, HasSubstr("'prog space list') path='prog space list' ;;"));
  EXPECT_THAT(bash, HasSubstr("'prog put --mode') COMPREPLY=($(compgen -W 'fast safe'"));
  const std::string zsh = CompletionScript(tree, "zsh").value();
  EXPECT_THAT(zsh, HasSubstr("#compdef prog"));
  EXPECT_THAT(zsh, HasSubstr("'list:it'\\''s a list\\: of \\ all'"));
  const std::string fish = CompletionScript(tree, "fish").value();
  EXPECT_THAT(fish, HasSubstr("-a 'list' -d 'it\\'s a list: of \\\\ all'"));
  EXPECT_THAT(CompletionScript(tree, "csh"), HasCode(kv::Code::kInvalid));
}

}  // namespace
}  // namespace cairn::tools
