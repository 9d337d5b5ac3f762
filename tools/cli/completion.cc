// Every command becomes one case, named by its path; the script walks the typed words down the
// tree.
#include "tools/cli/completion.h"

#include <functional>
#include <string_view>

namespace cairn::tools {
namespace {

void Walk(const CommandInfo& command, const std::function<void(const CommandInfo&)>& visit) {
  visit(command);
  for (const CommandInfo& inner : command.commands) Walk(inner, visit);
}

std::string Join(const std::vector<std::string>& words, std::string_view between) {
  std::string text;
  for (const std::string& word : words) text.append(text.empty() ? "" : between).append(word);
  return text;
}

std::vector<std::string> CommandNames(const CommandInfo& command) {
  std::vector<std::string> names;
  for (const CommandInfo& inner : command.commands) names.push_back(inner.name);
  return names;
}

std::vector<std::string> Flags(const CommandInfo& command) {
  std::vector<std::string> flags;
  for (const OptionInfo& option : command.options) {
    flags.insert(flags.end(), option.flags.begin(), option.flags.end());
  }
  return flags;
}

// The case labels of each flag that takes a value, with what completes it.
std::string BashValues(const CommandInfo& command) {
  std::string cases;
  for (const OptionInfo& option : command.options) {
    if (option.flags.empty() || option.value.empty()) continue;
    std::vector<std::string> labels;
    for (const std::string& flag : option.flags) {
      labels.push_back(std::string("'").append(command.path).append(" ").append(flag).append("'"));
    }
    cases += "    " + Join(labels, "|") + ")";
    cases += option.choices.empty() ? " COMPREPLY=($(compgen -f -- \"$current\")); return ;;\n"
                                    : " COMPREPLY=($(compgen -W '" + Join(option.choices, " ") +
                                          "' -- \"$current\")); return ;;\n";
  }
  return cases;
}

std::string Bash(const CommandInfo& root) {
  std::string descend, values, words;
  Walk(root, [&](const CommandInfo& command) {
    for (const CommandInfo& inner : command.commands) {
      descend += "      '" + command.path + " " + inner.name + "') path='" + inner.path + "' ;;\n";
    }
    values += BashValues(command);
    words += "    '" + command.path + "') commands='" + Join(CommandNames(command), " ") +
             "' flags='" + Join(Flags(command), " ") + "' ;;\n";
  });
  const std::string name = root.name;
  return "# bash completion of " + name + "; load it with: source <(" + name +
         " completion bash)\n_" + name +
         "() {\n"
         "  local current=\"${COMP_WORDS[COMP_CWORD]}\" previous=\"${COMP_WORDS[COMP_CWORD-1]}\"\n"
         "  local path='" + name + "' commands='' flags='' i\n"
         "  for ((i = 1; i < COMP_CWORD; ++i)); do\n"
         "    case \"$path ${COMP_WORDS[i]}\" in\n" + descend +
         "    esac\n"
         "  done\n"
         "  case \"$path $previous\" in\n" + values +
         "  esac\n"
         "  case \"$path\" in\n" + words +
         "  esac\n"
         "  if [[ $current == -* ]]; then\n"
         "    COMPREPLY=($(compgen -W \"$flags\" -- \"$current\"))\n"
         "  elif [[ -n $commands ]]; then\n"
         "    COMPREPLY=($(compgen -W \"$commands\" -- \"$current\"))\n"
         "  else\n"
         "    COMPREPLY=($(compgen -f -- \"$current\"))\n"
         "  fi\n"
         "}\ncomplete -o filenames -F _" + name + " " + name + "\n";
}

// Between single quotes, with colons that _describe would read kept literal.
std::string ZshText(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else if (c == ':') {
      out += "\\:";
    } else {
      out += c;
    }
  }
  return out;
}

std::string Zsh(const CommandInfo& root) {
  std::string descend, lists;
  Walk(root, [&](const CommandInfo& command) {
    lists += "    '" + command.path + "')\n      commands=(";
    for (const CommandInfo& inner : command.commands) {
      descend += "      '" + command.path + " " + inner.name + "') path_='" + inner.path + "' ;;\n";
      lists += " '" + ZshText(inner.name) + ":" + ZshText(inner.help) + "'";
    }
    lists += ")\n      flags=(";
    for (const OptionInfo& option : command.options) {
      for (const std::string& flag : option.flags) {
        lists += " '" + ZshText(flag) + ":" + ZshText(option.help) + "'";
      }
    }
    lists += ") ;;\n";
  });
  const std::string name = root.name;
  return "#compdef " + name + "\n# zsh completion; put it on your fpath as _" + name + "\n_" +
         name +
         "() {\n"
         "  local path_='" + name + "' i\n  local -a commands flags\n"
         "  for ((i = 2; i < CURRENT; ++i)); do\n"
         "    case \"$path_ ${words[i]}\" in\n" + descend +
         "    esac\n  done\n  case \"$path_\" in\n" + lists +
         "  esac\n"
         "  if [[ ${words[CURRENT]} == -* ]]; then\n    _describe option flags -o nosort\n"
         "  elif (( ${#commands} )); then\n    _describe command commands\n"
         "  else\n    _files\n  fi\n}\n"
         "compdef _" + name + " " + name + "\n";
}

std::string FishText(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string Fish(const CommandInfo& root) {
  const std::string name = root.name;
  std::string descend, lines;
  Walk(root, [&](const CommandInfo& command) {
    const std::string here = "complete -c " + name + " -n 'test (__" + name + "_path) = \"" +
                             command.path + "\"'";
    for (const CommandInfo& inner : command.commands) {
      descend += "      case '" + command.path + " " + inner.name + "'\n        set path '" +
                 inner.path + "'\n";
      lines += here + " -f -a '" + inner.name + "' -d '" + FishText(inner.help) + "'\n";
    }
    for (const OptionInfo& option : command.options) {
      if (option.flags.empty()) continue;
      lines += here;
      for (const std::string& flag : option.flags) {
        lines += flag.starts_with("--") ? " -l " + flag.substr(2) : " -s " + flag.substr(1);
      }
      if (!option.value.empty()) lines += " -r";
      if (!option.choices.empty()) lines += " -f -a '" + Join(option.choices, " ") + "'";
      lines += " -d '" + FishText(option.help) + "'\n";
    }
  });
  return "# fish completion; load it with: " + name + " completion fish | source\n"
         "function __" + name + "_path\n"
         "  set -l path '" + name + "'\n"
         "  for word in (commandline -opc)[2..-1]\n"
         "    switch \"$path $word\"\n" + descend +
         "    end\n  end\n  echo $path\nend\n" + lines;
}

}  // namespace

kv::Result<std::string> CompletionScript(const CommandInfo& command, const std::string& shell) {
  if (shell == "bash") return Bash(command);
  if (shell == "zsh") return Zsh(command);
  if (shell == "fish") return Fish(command);
  return kv::Status(kv::Code::kInvalid, "'" + shell + "' is not one of: bash, zsh, fish");
}

}  // namespace cairn::tools
