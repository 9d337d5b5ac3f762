// Each reason for a miss is told from the others, and each known cache killer is found by name.
#include "tools/planner/explain.h"

#include <gmock/gmock.h>

#include "tests/unit/planner/trace_files.h"
#include "tools/planner/lint.h"

namespace cairn::tools {
namespace {

using ::testing::HasSubstr;

Request Turn(int64_t time_ms, uint64_t session, std::vector<uint64_t> blocks) {
  return {.time_ms = time_ms,
          .input_tokens = blocks.size() * 16,
          .session = session,
          .blocks = std::move(blocks)};
}

TEST(MissExplainer, TellsReasonsApart) {
  MissExplainer explainer({.block_tokens = 16, .ttl_ms = 60'000, .capacity_blocks = 6});
  EXPECT_EQ(explainer.Add(Turn(0, 1, {1, 2, 3})).reason, MissReason::kFirst);
  const Miss grown = explainer.Add(Turn(1'000, 1, {1, 2, 3, 4}));
  EXPECT_EQ(grown.reason, MissReason::kGrown);
  EXPECT_EQ(grown.first_block, 3u);
  EXPECT_EQ(grown.hit_tokens, 48u);
  const Miss changed = explainer.Add(Turn(2'000, 1, {1, 9, 10}));
  EXPECT_EQ(changed.reason, MissReason::kChanged);
  EXPECT_EQ(changed.first_block, 1u);
  EXPECT_EQ(explainer.Add(Turn(3'000, 1, {1, 9, 10})).reason, MissReason::kNone);
  EXPECT_EQ(explainer.Add(Turn(4'000, 0, {77})).reason, MissReason::kUnlike);
  const Miss expired = explainer.Add(Turn(100'000, 1, {1, 9}));
  EXPECT_EQ(expired.reason, MissReason::kExpired);
  EXPECT_EQ(expired.age_ms, 97'000);
  explainer.Add(Turn(101'000, 2, {20, 21, 22, 23, 24}));
  const Miss evicted = explainer.Add(Turn(102'000, 1, {1, 9}));
  EXPECT_EQ(evicted.reason, MissReason::kEvicted);
  EXPECT_EQ(evicted.first_block, 1u);  // The root was still among the last six.
}

// Without sessions, the last prompt with the same beginning tells most.
TEST(MissExplainer, ComparesWithTheLastPromptThatBeganAlikeWhereNoSessionIsNamed) {
  MissExplainer explainer({.block_tokens = 16});
  const auto add = [&](int64_t time_ms, uint64_t line, std::vector<uint64_t> blocks) {
    Request request = Turn(time_ms, 0, std::move(blocks));
    request.line = line;
    return explainer.Add(request);
  };
  EXPECT_EQ(add(0, 1, {1, 2, 3}).reason, MissReason::kUnlike);
  const Miss turn = add(5'000, 2, {1, 2, 3, 4});
  EXPECT_EQ(turn.reason, MissReason::kGoesOn);
  EXPECT_EQ(turn.last_line, 1u);
  EXPECT_EQ(turn.age_ms, 5'000);
  const Miss fork = add(7'000, 3, {1, 2, 9});
  EXPECT_EQ(fork.reason, MissReason::kLeaves);
  EXPECT_EQ(fork.first_block, 2u);
  EXPECT_EQ(fork.last_line, 2u);
  EXPECT_EQ(fork.age_ms, 2'000);
}

TextRequest Log(std::vector<Piece> pieces, uint64_t line = 1) {
  TextRequest request;
  request.pieces = std::move(pieces);
  request.model = "m";
  request.base.session = 5;
  request.base.line = line;
  request.base.input_tokens = request.bytes() / 4;
  return request;
}

TEST(CompareTexts, NamesThePartThatChanged) {
  const TextRequest base =
      Log({{"tools[0]", "{\"a\":1}"}, {"system", "Be kind."}, {"messages[0].user", "hi"}});
  TextRequest longer = base;
  longer.pieces.push_back({"messages[1].assistant", "hello"});
  EXPECT_FALSE(CompareTexts(base, longer).differs);
  TextRequest other = base;
  other.pieces[1].text = "Be blunt.";
  const TextChange change = CompareTexts(base, other);
  EXPECT_TRUE(change.differs);
  EXPECT_EQ(change.reason, "system_changed");
  EXPECT_EQ(change.part, "system");
  EXPECT_EQ(change.byte, 10u);
  EXPECT_EQ(change.lost_bytes, 7u);
  other = base;
  other.model = "n";
  EXPECT_EQ(CompareTexts(base, other).reason, "model_changed");
  other = base;
  other.pieces[0].text = "{\"b\":1}";
  EXPECT_EQ(CompareTexts(base, other).reason, "tools_changed");
}

std::string OnlyRule(std::vector<Piece> earlier, std::vector<Piece> later) {
  RequestLinter linter;
  linter.Add(Log(std::move(earlier), 1));
  linter.Add(Log(std::move(later), 2));
  const auto findings = linter.Findings();
  EXPECT_EQ(findings.size(), 1u);
  if (findings.empty()) return "";
  EXPECT_FALSE(findings[0].advice.empty());
  return findings[0].rule;
}

TEST(RequestLinter, FindsEachKnownCacheKiller) {
  const Piece user = {"messages[0].user", R"({"role":"user","content":"hi"})"};
  const auto system = [](const char* text) { return Piece{"system", text}; };
  const auto tool = [](const char* part, const char* text) { return Piece{part, text}; };
  EXPECT_EQ(OnlyRule({system("x-anthropic-billing-header: cch=ab12; Rules."), user},
                     {system("x-anthropic-billing-header: cch=99ff; Rules."), user}),
            "billing-header");
  EXPECT_EQ(OnlyRule({system("Rules. <total_tokens>900 tokens left"), user},
                     {system("Rules. <total_tokens>812 tokens left"), user}),
            "remaining-tokens");
  EXPECT_EQ(OnlyRule({system("Today is 2026-11-28. Rules."), user},
                     {system("Today is 2026-11-29. Rules."), user}),
            "clock-in-prefix");
  EXPECT_EQ(OnlyRule({system("It is 12:30:05 now."), user}, {system("It is 12:31:09 now."), user}),
            "clock-in-prefix");
  const std::pair<const char*, const char*> clocks[] = {
      {"Today is Sunday, November 29.", "Today is Monday, November 30."},
      {"Today is November 29, 2026.", "Today is November 30, 2026."},
      {"It is May 1, 2026.", "It is May 10, 2026."},
      {"It is 29 Nov 2026.", "It is 29 Dec 2026."},
      {"It is 10:30 AM in Oslo.", "It is 10:31 AM in Oslo."},
      {"It is 11 AM.", "It is 11 PM."},
      {"Now: 9:05", "Now: 9:06"},
      {"Rules.\\nSunday, noon", "Rules.\\nMonday, noon"},
      {"now=1764411060", "now=1764411061"},
      {"Thu Nov 26", "Fri Nov 27"},
      {"今天是11月29日，星期日。", "今天是11月30日，星期一。"},
      {"今天是星期日。", "今天是星期一。"},
  };
  for (const auto& [earlier, later] : clocks) {
    EXPECT_EQ(OnlyRule({system(earlier), user}, {system(later), user}), "clock-in-prefix") << later;
  }
  const std::pair<const char*, const char*> others[] = {
      {"You may edit files.", "You can edit files."},
      {"Use 29 tools at most.", "Use 30 tools at most."},
      {"I am kind.", "I was kind."},
      {"Be blunt on Sunday.", "Be kind on Sunday."},
      {"See section 10:3.", "See section 10:4."},
      {"Say march, or sat.", "Say run, or sat."},
  };
  for (const auto& [earlier, later] : others) {
    EXPECT_EQ(OnlyRule({system(earlier), user}, {system(later), user}), "system-changed") << later;
  }
  EXPECT_EQ(OnlyRule({system("Request 3f2b8c1d-aa01-4c55-9e10-0123456789ab."), user},
                     {system("Request 9a2b8c1d-bb01-4c55-9e10-0123456789ab."), user}),
            "id-in-prefix");
  EXPECT_EQ(
      OnlyRule({tool("tools[0]", R"({"name":"a"})"), tool("tools[1]", R"({"name":"b"})"), user},
               {tool("tools[0]", R"({"name":"b"})"), tool("tools[1]", R"({"name":"a"})"), user}),
      "tools-reordered");
  EXPECT_EQ(OnlyRule({tool("tools[0]", R"({"name":"a","type":"function"})"), user},
                     {tool("tools[0]", R"({"type":"function","name":"a"})"), user}),
            "json-key-order");
  EXPECT_EQ(OnlyRule({tool("tools[0]", R"({"name":"a"})"), user},
                     {tool("tools[0]", R"({"name":"c"})"), user}),
            "tools-changed");
  EXPECT_EQ(OnlyRule({system("Be kind."), user}, {system("Be blunt."), user}), "system-changed");
  EXPECT_EQ(OnlyRule({system("Be kind."), user, {"messages[1].assistant", "A long story"}},
                     {system("Be kind."), user, {"messages[1].assistant", "Summary: a story"}}),
            "history-edited");
  EXPECT_EQ(OnlyRule({system("Be kind."),
                      user,
                      {"messages[1].system", R"({"role":"system","content":"The file changed."})"}},
                     {system("Be kind. The file changed."), user}),
            "system-hoisted");
}

TEST(RequestLinter, SeesAServerThatRecomputesWhatItHad) {
  RequestLinter linter;
  TextRequest first = Log({{"system", std::string(4'096, 's')}, {"messages[0].user", "hi"}});
  linter.Add(first);
  TextRequest second = first;
  second.pieces.push_back({"messages[1].assistant", "hello"});
  second.cached_tokens = 1'000;
  linter.Add(second);
  EXPECT_TRUE(linter.Findings().empty());
  second.pieces.push_back({"messages[2].user", "more"});
  second.cached_tokens = 0;
  linter.Add(second);
  ASSERT_EQ(linter.Findings().size(), 1u);
  EXPECT_EQ(linter.Findings()[0].rule, "server-recomputes");
}

TextRequest Unnamed(std::vector<Piece> pieces, uint64_t line) {
  TextRequest request = Log(std::move(pieces), line);
  request.base.session = 0;
  return request;
}

// Chats side by side of which nobody says that they are two.
TEST(RequestLinter, HasNothingAgainstConversationsWithoutNames) {
  RequestLinter linter;
  const Piece system = {"messages[0].system", "Rules of the house, for all."};
  std::vector<Piece> chats[] = {{system, {"messages[1].user", "Tell me of boats."}},
                                {system, {"messages[1].user", "And of trains?"}}};
  uint64_t line = 0;
  for (int turn = 0; turn < 4; ++turn) {
    for (std::vector<Piece>& chat : chats) {
      linter.Add(Unnamed(chat, ++line));
      chat.push_back({"messages[2].assistant", "answer " + std::to_string(turn)});
      chat.push_back({"messages[3].user", "question " + std::to_string(turn)});
    }
  }
  EXPECT_TRUE(linter.Findings().empty());
  chats[1][3].text = "another";
  linter.Add(Unnamed(chats[1], ++line));
  ASSERT_EQ(linter.Findings().size(), 1u);
  EXPECT_EQ(linter.Findings()[0].rule, "history-edited");
}

// A session's agents take turns, each with a prompt of its own.
TEST(RequestLinter, TellsTheAgentsOfASessionApart) {
  std::string log;
  for (int turn = 0; turn < 3; ++turn) {
    for (const char* agent : {"planner", "tester"}) {
      std::string messages;
      for (int i = 0; i <= turn; ++i) {
        messages += std::string(i == 0 ? "" : ",") + R"({"role":"user","content":"step )" +
                    std::to_string(i) + " of the " + agent + R"("})";
      }
      log += std::string(R"({"headers":{"x-claude-code-session-id":"s",)") +
             R"("x-claude-code-agent-id":")" + agent + R"("},"system":"You are the )" + agent +
             R"(.","messages":[)" + messages + "]}\n";
    }
  }
  RequestLinter linter;
  TextLog text = TextLog::Open(WriteTrace("agents.jsonl", log), BrokenLines::kRefuse,
                               WrongTimes::kLeave, 4)
                     .value();
  TextRequest request;
  while (text.Next(request).value()) linter.Add(request);
  EXPECT_EQ(linter.requests(), 6u);
  EXPECT_THAT(linter.Findings(), ::testing::IsEmpty());
}

TEST(RequestLinter, HasNothingAgainstAGrowingConversation) {
  RequestLinter linter;
  std::vector<Piece> pieces = {{"system", "Be kind."}};
  for (int turn = 0; turn < 6; ++turn) {
    pieces.push_back({"messages[" + std::to_string(turn) + "].user", "again"});
    linter.Add(Log(pieces));
  }
  EXPECT_THAT(LintText(linter), HasSubstr("nothing"));
}

}  // namespace
}  // namespace cairn::tools
