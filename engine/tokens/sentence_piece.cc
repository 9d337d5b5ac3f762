// SentencePiece's BPE: the whole text at once, neighbours merged by the score of what they make.
#include <algorithm>
#include <limits>
#include <queue>
#include <string>

#include "engine/tokens/text_encoder.h"
#include "engine/tokens/unicode.h"

namespace cairn::engine {
namespace {

constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581

class SentencePieceEncoder final : public TextEncoder {
 public:
  SentencePieceEncoder(const Vocabulary& vocabulary, bool add_space_prefix)
      : vocabulary_(vocabulary), add_space_prefix_(add_space_prefix) {
    for (TokenId id = 0; id < vocabulary.size(); ++id) {
      spelling_size_max_ = std::max(spelling_size_max_, vocabulary.Spelling(id).size());
    }
  }

  void Encode(std::string_view text, std::vector<TokenId>& tokens) const override {
    if (text.empty()) return;
    std::string marked;
    if (add_space_prefix_) marked += kSpaceMark;
    for (const char c : text) {
      if (c == ' ') {
        marked += kSpaceMark;
      } else {
        marked += c;
      }
    }
    EncodeMarked(marked, tokens);
  }

 private:
  static constexpr size_t kNone = std::numeric_limits<size_t>::max();

  struct Piece {
    size_t start;
    size_t size;  // 0: merged into the one before.
    size_t previous;
    size_t next;
  };
  struct Candidate {
    float score;
    size_t left;
    size_t right;
    size_t size;
    // The queue gives the largest first: highest score, then leftmost.
    bool operator<(const Candidate& other) const {
      return score != other.score ? score < other.score : left > other.left;
    }
  };

  static std::vector<Piece> Cut(std::string_view text) {
    std::vector<Piece> pieces;
    for (size_t at = 0; at < text.size();) {
      const size_t size = CharacterAt(text, at).size;
      const size_t index = pieces.size();
      pieces.push_back({at, size, index == 0 ? kNone : index - 1, index + 1});
      at += size;
    }
    pieces.back().next = kNone;
    return pieces;
  }

  void EncodeMarked(std::string_view text, std::vector<TokenId>& tokens) const {
    std::vector<Piece> pieces = Cut(text);
    std::priority_queue<Candidate> queue;
    const auto offer = [&](size_t left, size_t right) {
      if (left == kNone || right == kNone) return;
      const size_t size = pieces[left].size + pieces[right].size;
      if (size > spelling_size_max_) return;
      const auto id = vocabulary_.FindText(text.substr(pieces[left].start, size));
      if (id) queue.push({vocabulary_.Score(*id), left, right, size});
    };
    for (size_t i = 1; i < pieces.size(); ++i) offer(i - 1, i);
    while (!queue.empty()) {
      const Candidate best = queue.top();
      queue.pop();
      Piece& left = pieces[best.left];
      Piece& right = pieces[best.right];
      if (left.size == 0 || right.size == 0 || left.size + right.size != best.size) continue;
      left.size = best.size;
      right.size = 0;
      left.next = right.next;
      if (left.next != kNone) pieces[left.next].previous = best.left;
      offer(left.previous, best.left);
      offer(best.left, left.next);
    }
    for (size_t i = 0; i != kNone; i = pieces[i].next) {
      Emit(text.substr(pieces[i].start, pieces[i].size), tokens);
    }
  }

  void Emit(std::string_view piece, std::vector<TokenId>& tokens) const {
    if (const auto id = vocabulary_.FindText(piece)) {
      tokens.push_back(*id);
      return;
    }
    for (const char c : piece) {
      const auto id = vocabulary_.ByteToken(static_cast<uint8_t>(c));
      if (id) {
        tokens.push_back(*id);
      } else if (vocabulary_.special().unknown) {
        tokens.push_back(*vocabulary_.special().unknown);
      }
    }
  }

  const Vocabulary& vocabulary_;
  const bool add_space_prefix_;
  size_t spelling_size_max_ = 0;
};

}  // namespace

std::unique_ptr<TextEncoder> MakeSentencePieceEncoder(const Vocabulary& vocabulary,
                                                      bool add_space_prefix) {
  return std::make_unique<SentencePieceEncoder>(vocabulary, add_space_prefix);
}

}  // namespace cairn::engine
