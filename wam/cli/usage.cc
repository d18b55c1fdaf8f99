#include "wam/cli/usage.h"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <string>
#include <vector>

#include "wam/base/quote.h"
#include "wam/base/strings.h"

namespace wam::cli {
namespace {

const CLI::App* reached_command(const CLI::App& app) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().back();
  return command;
}

std::string full_name(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  return parent == nullptr ? command.get_name() : full_name(*parent) + " " + command.get_name();
}

std::vector<std::string> subcommand_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* sub : command.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(sub->get_name());
  }
  return names;
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::string see_help(const CLI::App& command) { return "See `" + full_name(command) + " --help`."; }

ErrorInfo missing_command(const CLI::App& command) {
  const std::vector<std::string> names = subcommand_names(command);
  const std::vector<std::string> extras = command.remaining();
  if (extras.empty()) {
    return {.what = "a command is missing",
            .expected = "one of " + join(names, ", "),
            .remedy = see_help(command)};
  }
  const bool is_option = extras.front().starts_with("-");
  return {.what = is_option ? "unknown option" : "unknown command",
          .got = quote(extras.front()),
          .expected = is_option ? "a command first" : "one of " + join(names, ", "),
          .remedy = name_hint(extras.front(), is_option ? option_names(command) : names)};
}

ErrorInfo unexpected_argument(const CLI::App& command) {
  const std::string argument = command.remaining().front();
  const bool is_option = argument.starts_with("-");
  return {.what = is_option ? "unknown option" : "an argument too many",
          .got = quote(argument),
          .expected = is_option ? "an option of this command" : "no more than the command takes",
          .remedy = is_option ? name_hint(argument, option_names(command)) : see_help(command)};
}

}  // namespace

ConfigError usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& command = *reached_command(app);
  ErrorInfo info{.what = error.what(), .remedy = see_help(command)};
  if (!subcommand_names(command).empty()) {
    info = missing_command(command);
  } else if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr &&
             !command.remaining().empty()) {
    info = unexpected_argument(command);
  } else if (dynamic_cast<const CLI::ConversionError*>(&error) != nullptr) {
    info.expected = "a number that the option can hold";
  }
  info.where = full_name(command);
  return ConfigError(std::move(info));
}

std::string check_positive(const std::string& text) {
  const bool is_positive = std::strtod(text.c_str(), nullptr) > 0;
  return is_positive ? "" : "got " + quote(text) + ", expected more than 0";
}

std::string check_not_negative(const std::string& text) {
  const bool is_fine = !text.starts_with("-") && std::strtod(text.c_str(), nullptr) >= 0;  // no NaN
  return is_fine ? "" : "got " + quote(text) + ", expected 0 or more";
}

}  // namespace wam::cli
