// Byte-level BPE: words of bytes, merged pair by pair in the order of the file's list.
#include <algorithm>
#include <array>
#include <limits>
#include <queue>
#include <string>
#include <unordered_map>

#include "engine/gguf/byte_alphabet.h"
#include "engine/tokens/pre_tokenizer.h"
#include "engine/tokens/text_encoder.h"
#include "kvstore/base/check.h"

namespace cairn::engine {
namespace {

using kv::Code;
using kv::Result;
using kv::Status;

// A token, or a text that only merges name. Symbols below the vocabulary's size are token ids.
using Symbol = uint32_t;

constexpr uint32_t kNoRank = std::numeric_limits<uint32_t>::max();
// Up to this many symbols a plain scan for the best pair beats a heap.
constexpr size_t kShortWordMax = 48;

struct Merge {
  uint32_t rank = kNoRank;
  Symbol result = 0;
};

// Pairs of symbols to merges: an open-addressed table, since it is asked for every pair of bytes.
class MergeTable {
 public:
  explicit MergeTable(size_t merge_count) {
    size_t size = 16;
    while (size < merge_count * 2) size *= 2;
    entries_.resize(size);
  }

  // Keeps the first merge of a pair that is given twice.
  void Insert(Symbol left, Symbol right, Merge merge) {
    Entry& entry = entries_[SlotOf(left, right)];
    if (entry.merge.rank == kNoRank) entry = {left, right, merge};
  }
  Merge Find(Symbol left, Symbol right) const { return entries_[SlotOf(left, right)].merge; }

 private:
  struct Entry {
    Symbol left = 0;
    Symbol right = 0;
    Merge merge;
  };

  size_t SlotOf(Symbol left, Symbol right) const {
    const uint64_t key = (uint64_t{left} << 32 | right) * 0x9E3779B97F4A7C15u;
    size_t slot = (key >> 32) & (entries_.size() - 1);
    while (entries_[slot].merge.rank != kNoRank &&
           (entries_[slot].left != left || entries_[slot].right != right)) {
      slot = (slot + 1) & (entries_.size() - 1);
    }
    return slot;
  }

  std::vector<Entry> entries_;
};

// Gives each text a symbol: its token's id, or a new number past the vocabulary.
class SymbolNames {
 public:
  explicit SymbolNames(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {}

  Symbol Of(const std::string& spelling) {
    if (const auto id = vocabulary_.FindText(spelling)) return *id;
    const auto next = static_cast<Symbol>(vocabulary_.size() + extra_.size());
    return extra_.emplace(spelling, next).first->second;
  }

 private:
  const Vocabulary& vocabulary_;
  std::unordered_map<std::string, Symbol> extra_;
};

class BytePairEncoder final : public TextEncoder {
 public:
  BytePairEncoder(const Vocabulary& vocabulary, PreTokenizer kind, size_t merge_count)
      : vocabulary_(vocabulary),
        kind_(kind),
        // These models look a word up whole before they merge.
        whole_words_first_(kind == PreTokenizer::kLlama3),
        merges_(merge_count) {}

  Status AddMerges(const std::vector<std::string_view>& merges) {
    SymbolNames names(vocabulary_);
    for (uint32_t byte = 0; byte < 256; ++byte) {
      byte_symbols_[byte] = names.Of(SpellByte(static_cast<uint8_t>(byte)));
    }
    for (size_t rank = 0; rank < merges.size(); ++rank) {
      const std::string_view merge = merges[rank];
      // The space between the two parts; a part never holds one, as spaces are spelled otherwise.
      const size_t space = merge.find(' ', 1);
      if (space == std::string_view::npos || space + 1 == merge.size()) {
        return Status(Code::kInvalid,
                      "merge " + std::to_string(rank) + " of the tokenizer is no pair of texts");
      }
      const std::string left(merge.substr(0, space));
      const std::string right(merge.substr(space + 1));
      const Symbol left_symbol = names.Of(left);
      const Symbol right_symbol = names.Of(right);
      merges_.Insert(left_symbol, right_symbol,
                     {static_cast<uint32_t>(rank), names.Of(left + right)});
    }
    return Status();
  }

  void Encode(std::string_view text, std::vector<TokenId>& tokens) const override {
    std::vector<std::string_view> words;
    SplitWords(kind_, text, words);
    // Where in `tokens` a word was put first: most words of a long text come again.
    std::unordered_map<std::string_view, std::pair<size_t, size_t>> seen;
    const bool remember = words.size() > 64;
    Scratch scratch;
    for (const std::string_view word : words) {
      if (remember) {
        const auto found = seen.find(word);
        if (found != seen.end()) {
          const auto [start, count] = found->second;
          for (size_t i = 0; i < count; ++i) tokens.push_back(tokens[start + i]);
          continue;
        }
      }
      const size_t start = tokens.size();
      EncodeWord(word, scratch, tokens);
      if (remember) seen.emplace(word, std::pair(start, tokens.size() - start));
    }
  }

 private:
  // A symbol and where it stands, in a list linked by index.
  struct Link {
    Symbol symbol;
    size_t start;  // In the word, so that a symbol without a token can be cut into bytes.
    size_t previous;
    size_t next;
  };
  struct Candidate {
    uint32_t rank;
    size_t left;
    Symbol left_symbol;
    Symbol right_symbol;
    // The queue gives the largest first: lowest rank, then leftmost.
    bool operator<(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : left > other.left;
    }
  };
  struct Scratch {
    std::vector<Symbol> symbols;
    std::vector<size_t> starts;
    std::vector<Merge> merges;
  };
  static constexpr size_t kNone = std::numeric_limits<size_t>::max();

  void EncodeWord(std::string_view word, Scratch& scratch, std::vector<TokenId>& tokens) const {
    if (whole_words_first_ && word.size() <= 256) {
      std::string spelling;
      for (const char c : word) spelling += SpellByte(static_cast<uint8_t>(c));
      if (const auto id = vocabulary_.FindText(spelling)) {
        tokens.push_back(*id);
        return;
      }
    }
    if (word.size() <= kShortWordMax) {
      EncodeShortWord(word, scratch, tokens);
    } else {
      EncodeLongWord(word, tokens);
    }
  }

  void EncodeShortWord(std::string_view word, Scratch& scratch,
                       std::vector<TokenId>& tokens) const {
    std::vector<Symbol>& symbols = scratch.symbols;
    std::vector<size_t>& starts = scratch.starts;
    std::vector<Merge>& merges = scratch.merges;  // Of symbol i with symbol i + 1.
    symbols.clear();
    starts.clear();
    merges.clear();
    for (size_t i = 0; i < word.size(); ++i) {
      symbols.push_back(byte_symbols_[static_cast<uint8_t>(word[i])]);
      starts.push_back(i);
      if (i != 0) merges.push_back(merges_.Find(symbols[i - 1], symbols[i]));
    }
    while (!merges.empty()) {
      const auto best =
          std::min_element(merges.begin(), merges.end(),
                           [](const Merge& a, const Merge& b) { return a.rank < b.rank; });
      if (best->rank == kNoRank) break;
      const auto at = best - merges.begin();
      const auto i = static_cast<size_t>(at);
      symbols[i] = best->result;
      symbols.erase(symbols.begin() + at + 1);
      starts.erase(starts.begin() + at + 1);
      merges.erase(best);
      if (i != 0) merges[i - 1] = merges_.Find(symbols[i - 1], symbols[i]);
      if (i < merges.size()) merges[i] = merges_.Find(symbols[i], symbols[i + 1]);
    }
    for (size_t i = 0; i < symbols.size(); ++i) {
      const size_t end = i + 1 < starts.size() ? starts[i + 1] : word.size();
      Emit(symbols[i], word.substr(starts[i], end - starts[i]), tokens);
    }
  }

  void EncodeLongWord(std::string_view word, std::vector<TokenId>& tokens) const {
    std::vector<Link> links(word.size());
    std::priority_queue<Candidate> queue;
    const auto offer = [&](size_t left) {
      if (left == kNone || links[left].next == kNone) return;
      const Link& a = links[left];
      const Link& b = links[a.next];
      const Merge merge = merges_.Find(a.symbol, b.symbol);
      if (merge.rank != kNoRank) queue.push({merge.rank, left, a.symbol, b.symbol});
    };
    for (size_t i = 0; i < word.size(); ++i) {
      links[i] = {byte_symbols_[static_cast<uint8_t>(word[i])], i, i == 0 ? kNone : i - 1,
                  i + 1 == word.size() ? kNone : i + 1};
    }
    for (size_t i = 0; i < word.size(); ++i) offer(i);
    while (!queue.empty()) {
      const Candidate best = queue.top();
      queue.pop();
      Link& left = links[best.left];
      // Out of date if either side has merged meanwhile (kRemoved matches no symbol).
      if (left.symbol != best.left_symbol || left.next == kNone) continue;
      Link& right = links[left.next];
      if (right.symbol != best.right_symbol) continue;
      left.symbol = merges_.Find(left.symbol, right.symbol).result;
      right.symbol = kRemoved;
      left.next = right.next;
      if (left.next != kNone) links[left.next].previous = best.left;
      offer(left.previous);
      offer(best.left);
    }
    for (size_t i = 0; i != kNone; i = links[i].next) {
      const size_t end = links[i].next == kNone ? word.size() : links[links[i].next].start;
      Emit(links[i].symbol, word.substr(links[i].start, end - links[i].start), tokens);
    }
  }

  // A symbol that is no token falls apart into its bytes; a byte without a token is dropped (such
  // vocabularies leave out only bytes that no UTF-8 text holds).
  void Emit(Symbol symbol, std::string_view bytes, std::vector<TokenId>& tokens) const {
    if (symbol < vocabulary_.size()) {
      tokens.push_back(symbol);
      return;
    }
    for (const char c : bytes) {
      const auto id = vocabulary_.ByteToken(static_cast<uint8_t>(c));
      if (id) tokens.push_back(*id);
    }
  }

  static constexpr Symbol kRemoved = std::numeric_limits<Symbol>::max();

  const Vocabulary& vocabulary_;
  const PreTokenizer kind_;
  const bool whole_words_first_;
  MergeTable merges_;
  std::array<Symbol, 256> byte_symbols_ = {};
};

}  // namespace

Result<std::unique_ptr<TextEncoder>> MakeBytePairEncoder(const GgufFile& file,
                                                         const Vocabulary& vocabulary) {
  PreTokenizer kind = PreTokenizer::kDefault;
  if (const auto name = file.GetString("tokenizer.ggml.pre"); name.ok()) {
    KV_ASSIGN_OR_RETURN(kind, PreTokenizerByName(name.value()));
  } else if (name.code() != Code::kNotFound) {
    return name.status();
  }
  KV_ASSIGN_OR_RETURN(const auto merges, file.GetStrings("tokenizer.ggml.merges"));
  auto encoder = std::make_unique<BytePairEncoder>(vocabulary, kind, merges.size());
  KV_RETURN_IF_ERROR(encoder->AddMerges(merges));
  return std::unique_ptr<TextEncoder>(std::move(encoder));
}

}  // namespace cairn::engine
