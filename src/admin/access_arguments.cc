#include "admin/access_arguments.h"

#include <functional>
#include <string>
#include <vector>

#include "access/access_file.h"
#include "access/network.h"
#include "base/option_values.h"
#include "base/text.h"

namespace nowcalls::admin {
namespace {

using TextCheck = std::function<Status(const std::string& text)>;

CLI::App* AddCommand(CLI::App* access, Command command, const std::string& name,
                     const std::string& help, Arguments* arguments) {
  CLI::App* const app = access->add_subcommand(name, help);
  app->footer("");
  app->callback([=] { arguments->command = command; });
  return app;
}

void AddFile(CLI::App* app, Arguments* arguments) {
  app->add_option("--access", arguments->file, "The access file, as of nowcalls-server --access")
      ->type_name("FILE")
      ->required();
}

void AddName(CLI::App* app, Arguments* arguments) {
  app->add_option_function<std::string>(
         "NAME",
         [arguments](const std::string& name) {
           Require("NAME", CheckName(name, access::kPrincipalNameBytesMax));
           arguments->principal.name = name;
         },
         "The principal")
      ->required();
}

void AddList(CLI::App* app, const std::string& option, const std::string& type,
             const std::string& help, std::vector<std::string>* list, const TextCheck& check) {
  app->add_option_function<std::vector<std::string>>(
         option,
         [=](const std::vector<std::string>& texts) {
           for (const std::string& text : texts) Require(option, check(text));
           *list = texts;
         },
         help)
      ->type_name(type)
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void AddAdd(CLI::App* access, Arguments* arguments) {
  CLI::App* const add =
      AddCommand(access, Command::kAccessAdd, "add",
                 "Append a principal with a new secret, which is printed once", arguments);
  access::NewPrincipal* const principal = &arguments->principal;
  AddName(add, arguments);
  add->add_option_function<std::string>(
         "--role",
         [principal](const std::string& name) {
           const auto role = access::RoleNamed(name);
           if (!role.has_value()) {
             throw CLI::ValidationError(
                 "--role", "must be observer, client or administrator, got " + Quoted(name));
           }
           principal->role = *role;
         },
         "What it may do: observer, client or administrator")
      ->type_name("ROLE")
      ->required();
  AddList(add, "--namespace", "GLOB", "Only this namespace, or with * at its end; repeatable [all]",
          &principal->namespaces, access::CheckNamespacePattern);
  AddList(add, "--certificate", "NAME", "The name that its certificate proves; repeatable",
          &principal->certificates, [](const std::string& name) {
            return CheckName(name, access::kCertificateNameBytesMax);
          });
  AddList(add, "--network", "CIDR", "Whoever connects from there is it; repeatable",
          &principal->networks,
          [](const std::string& text) { return access::ParseNetwork(text).status(); });
  add->add_flag("--no-secret", arguments->no_secret, "Make no secret");
  AddFile(add, arguments);
  add->callback([=] {
    arguments->command = Command::kAccessAdd;
    if (arguments->no_secret && principal->certificates.empty() && principal->networks.empty()) {
      throw CLI::ValidationError("--no-secret", "needs --certificate or --network beside it");
    }
  });
}

}  // namespace

AccessCommands AddAccessCommands(CLI::App* app, Arguments* arguments) {
  CLI::App* const access =
      app->add_subcommand("access", "Add, list, check or test principals: who may come in");
  access->footer("");
  access->require_subcommand(1);
  AddAdd(access, arguments);
  CLI::App* const rotate =
      AddCommand(access, Command::kAccessRotate, "rotate",
                 "Give a principal another secret beside those that it has", arguments);
  AddName(rotate, arguments);
  AddFile(rotate, arguments);
  CLI::App* const list = AddCommand(access, Command::kAccessList, "list",
                                    "Print the principals of an access file", arguments);
  AddFile(list, arguments);
  AddCommand(access, Command::kAccessCheck, "check",
             "Say all that is wrong with an access file; needs no server", arguments)
      ->add_option("FILE", arguments->file, "The access file")
      ->required();
  CLI::App* const test = AddCommand(access, Command::kAccessTest, "test",
                                    "Say whom the server takes this connection for", arguments);
  return {list, test};
}

bool IsOfAccessFile(Command command) {
  return command == Command::kAccessAdd || command == Command::kAccessRotate ||
         command == Command::kAccessList || command == Command::kAccessCheck;
}

}  // namespace nowcalls::admin
