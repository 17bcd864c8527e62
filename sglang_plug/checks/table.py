"""The rules of doctor and check: code, name, usual level and what each says, in one ordered table. Owns the codes; acts on nothing.

Codes are stable: a rule that goes leaves its code unused. Hundreds tell the family.
"""

from __future__ import annotations

from typing import NamedTuple

from sglang_plug.checks.model import Level

E, W, I = Level.ERROR, Level.WARNING, Level.INFO  # noqa: E741 - one letter keeps the table a table

FAMILIES = {
    "0": "the host: interpreter and SGLang",
    "1": "environment variables",
    "2": "package metadata",
    "3": "loading and activation",
    "4": "platform class",
    "5": "hooks and their targets",
    "6": "plugins among each other",
    "7": "imports of SGLang's inside",
    "8": "packaging",
    "9": "sglang-plug itself",
}


class Rule(NamedTuple):
    """One kind of finding. `level` is the usual one; a finding may be milder or harder where the runtime or the selection make it so."""

    code: str
    slug: str
    level: Level
    summary: str

    @property
    def family(self) -> str:
        """What the rule's hundred is about."""
        return FAMILIES[self.code[2]]


RULES: tuple[Rule, ...] = (
    Rule("SP001", "no-sglang", I, "SGLang is not installed in this interpreter; the stand-in was used"),
    Rule("SP002", "sglang-does-not-import", E, "`import sglang` fails, and no plugin is the reason"),
    Rule("SP003", "sglang-is-a-folder", E, "A bare folder called sglang is on the path and is no installation"),
    Rule("SP004", "other-sglang-command", E, "The sglang command on PATH belongs to another interpreter"),
    Rule("SP005", "no-plugin-system", E, "This SGLang release does not read the group that the plugin declares"),
    Rule("SP006", "unknown-release", I, "This SGLang release is not in the catalogue"),
    Rule("SP007", "launch-differs", W, "The sglang command and python -m see different plugins"),
    Rule("SP008", "beyond-standin", I, "A plugin needs more of SGLang than the stand-in has"),
    Rule("SP009", "frozen", I, "The interpreter is a frozen application, which has the metadata alone that it was built with"),
    Rule("SP050", "platform-undecided", E, "serve: no platform can be decided, so the engine would not start"),
    Rule("SP051", "silent-fallback", E, "serve: a platform plugin failed, and a built-in platform would serve in its place"),
    Rule("SP052", "served-elsewhere", E, "serve: an engine process uses another platform than the one that was decided"),
    Rule("SP053", "port-in-use", E, "serve: the server's port cannot be used"),
    Rule("SP054", "model-incomplete", E, "serve: no model is named, or its folder is missing or incomplete"),
    Rule("SP055", "ranks-without-cores", W, "serve: several ranks on a CPU without a word about which cores are whose"),
    Rule("SP056", "tokenizers-without-hooks", W, "serve: tokenizer workers load no plugins"),
    Rule("SP057", "ray-without-hooks", E, "serve: under Ray the schedulers load no plugins"),
    Rule("SP058", "release-without-hooks", I, "serve: this SGLang release loads no plugins in some processes"),
    Rule("SP059", "several-nodes", W, "serve: each node decides and loads plugins by itself"),
    Rule("SP060", "hooked-entrance", W, "serve: a hook on the function that a process is started with never fires there"),
    Rule("SP061", "hook-imports-model-runner", W, "serve: a hook makes init_backend() run in every process"),
    Rule("SP062", "hot-hook", W, "serve: a hook on the idle loop fires thousands of times a second"),
    Rule("SP063", "foreign-device", W, "serve: a device type of its own must be known to torch before init_backend()"),
    Rule("SP101", "platform-unknown", E, "SGLANG_PLATFORM names no installed platform"),
    Rule("SP102", "override-unknown", E, "SGLANG_DIFFUSION_PLATFORM_OVERRIDE names no platform"),
    Rule("SP103", "allowlist-unknown", E, "SGLANG_PLUGINS names something that is not installed"),
    Rule("SP104", "allowlist-empty", W, "SGLANG_PLUGINS is set and allows no plugin at all"),
    Rule("SP105", "allowlist-hides-platform", E, "SGLANG_PLUGINS leaves a platform plugin out of automatic selection"),
    Rule("SP106", "allowlist-drops-own-hooks", W, "SGLANG_PLUGINS leaves out hooks of the selected platform's own package"),
    Rule("SP107", "old-alias", W, "An old SGL_ variable sets, or overrides, a SGLANG_ variable"),
    Rule("SP108", "misspelt-variable", E, "A variable that nobody reads resembles one of SGLang's"),
    Rule("SP109", "unreadable-variable", E, "A variable holds text that cannot be read"),
    Rule("SP110", "cpu-engine-unread", W, "SGLANG_USE_CPU_ENGINE holds another text than 1 and counts as unset"),
    Rule("SP201", "broken-entry-points", E, "An entry_points.txt makes importlib.metadata fail for every package"),
    Rule("SP202", "odd-entry-points", W, "An entry_points.txt has lines that are silently ignored"),
    Rule("SP203", "malformed-value", E, "An entry point's value is not module:attribute"),
    Rule("SP204", "unread-group", E, "An entry-point group resembles SGLang's and is read by nobody"),
    Rule("SP205", "duplicate-name", E, "Two entry points of one group have the same name"),
    Rule("SP206", "reserved-name", E, "An entry point has a name that SGLang keeps for itself"),
    Rule("SP207", "hidden-metadata", E, "Two metadata folders describe one distribution; one hides the other"),
    Rule("SP208", "module-missing", E, "Metadata names a module that is not there"),
    Rule("SP209", "shadowed-module", E, "The module comes from another place than its distribution"),
    Rule("SP210", "editable-stale", W, "An editable install's metadata differs from its source"),
    Rule("SP211", "editable-source-gone", E, "An editable install's source folder is not there"),
    Rule("SP212", "files-missing", E, "Files that a distribution records are not there"),
    Rule("SP213", "startup-code", W, "A package runs code in every Python process by a .pth file"),
    Rule("SP214", "requires-other-sglang", W, "A package does not accept the installed SGLang or torch"),
    Rule("SP215", "no-version", I, "A package's version says nothing"),
    Rule("SP301", "does-not-load", E, "A plugin's module does not import"),
    Rule("SP302", "callback-raises", E, "A plugin's callback raises"),
    Rule("SP303", "ends-process", E, "A plugin ends the process"),
    Rule("SP304", "crashes", E, "A plugin crashes the interpreter"),
    Rule("SP305", "hangs", E, "A plugin does not return in time"),
    Rule("SP306", "memory", E, "A plugin asks for more memory than the limit"),
    Rule("SP307", "bad-callback", E, "An entry point is not a function without arguments"),
    Rule("SP308", "bad-return", E, "A platform's callback returns neither a class name nor None"),
    Rule("SP309", "hardware-absent", I, "A platform's callback returns None: its hardware is absent"),
    Rule("SP310", "circular-import", E, "A platform imports SGLang's inside while SGLang is half imported"),
    Rule("SP311", "reads-current-platform", E, "A platform's callback reads current_platform, which it is to decide"),
    Rule("SP312", "import-order", W, "A platform's module imports SGLang at its top and holds the callback"),
    Rule("SP313", "several-active", E, "Several platforms are active and none is selected"),
    Rule("SP320", "sets-environment", W, "A plugin changes environment variables"),
    Rule("SP321", "prints", W, "A plugin writes to stdout"),
    Rule("SP322", "changes-process", W, "A plugin changes the working directory, umask, sys.path or excepthook"),
    Rule("SP323", "signals", W, "A plugin changes signal handlers or the signal mask"),
    Rule("SP324", "threads", W, "A plugin starts threads"),
    Rule("SP325", "children", W, "A plugin leaves processes behind"),
    Rule("SP326", "start-method", W, "A plugin sets the start method of multiprocessing"),
    Rule("SP327", "root-logger", W, "A plugin configures the root logger"),
    Rule("SP328", "initialises-device", W, "A plugin initialises the device while it is activated"),
    Rule("SP329", "closes-streams", W, "A plugin closes or replaces stdout or stderr"),
    Rule("SP330", "imports-runtime", W, "A platform's callback imports SGLang's runtime"),
    Rule("SP331", "slow", W, "A plugin is slow to import or activate"),
    Rule("SP332", "torch-defaults", W, "A plugin changes torch's default type or device"),
    Rule("SP401", "class-missing", E, "The class that a callback names is not there"),
    Rule("SP402", "class-does-not-import", E, "The module of the platform class does not import"),
    Rule("SP403", "wrong-base", E, "The platform class does not derive from the runtime's base class"),
    Rule("SP404", "not-out-of-tree", E, "The platform class does not say PlatformEnum.OOT"),
    Rule("SP405", "not-constructible", E, "The platform class cannot be built without arguments"),
    Rule("SP406", "name-empty", E, "The platform class lacks device_name or device_type"),
    Rule("SP407", "method-missing", E, "A method that SGLang calls is not implemented"),
    Rule("SP408", "dead-override", W, "An override that this SGLang release no longer calls"),
    Rule("SP409", "uncalled-override", I, "An override that no SGLang code calls"),
    Rule("SP410", "signature-differs", E, "An override cannot be called as the base's method is called"),
    Rule("SP411", "shadowed-mixin", W, "A mixin's member never runs: SGLang's base comes first in the MRO"),
    Rule("SP412", "unknown-device-type", I, "torch does not know the device_type here"),
    Rule("SP413", "old-name-served", I, "An override under an old name that SGLang still serves"),
    Rule("SP414", "kind-differs", E, "A member is another kind of thing than in the base class"),
    Rule("SP415", "value-wrong", E, "A platform's method answers with a value that SGLang cannot use"),
    Rule("SP501", "target-missing", E, "A hook's target is not there"),
    Rule("SP502", "target-does-not-import", E, "The module of a hook's target does not import"),
    Rule("SP503", "target-malformed", E, "A hook's target is not spelled in a way that SGLang reads"),
    Rule("SP504", "async-target", W, "A hook on an async function meets a coroutine"),
    Rule("SP505", "generator-target", W, "A hook on a generator meets the generator"),
    Rule("SP506", "property-target", E, "A hook on a property turns it into a method"),
    Rule("SP507", "constant-target", E, "A hook on a constant turns it into a function"),
    Rule("SP508", "inherited-target", E, "A hook on an inherited class or static method breaks its calls"),
    Rule("SP509", "target-loses-api", W, "A hook takes attributes from its target that others may use"),
    Rule("SP510", "reexported-target", W, "A hook's target is defined elsewhere; the patch spreads to other modules"),
    Rule("SP511", "class-hook-type", E, "A class, or a class target, is hooked with another type than REPLACE"),
    Rule("SP512", "hook-type-forgotten", E, "A hook's parameters do not fit its type"),
    Rule("SP513", "hook-signature", E, "A hook cannot be called as its target is called"),
    Rule("SP514", "hook-return", E, "A hook returns what its type does not allow"),
    Rule("SP515", "async-hook", E, "An async hook on a target that is not async"),
    Rule("SP516", "registers-nothing", W, "A hook plugin runs and registers no hook"),
    Rule("SP517", "wrong-registry", E, "A hook is registered in the other runtime's registry"),
    Rule("SP518", "partial-registration", W, "A plugin fails after it has registered hooks, which stay"),
    Rule("SP519", "several-replace", W, "Several plugins replace one target; the last one wins"),
    Rule("SP520", "several-around", I, "Several plugins wrap one target; their order follows the installation"),
    Rule("SP521", "replace-overrides-class", W, "A hook replaces a method of a class that another hook replaces"),
    Rule("SP522", "replace-recurses", E, "A replacement calls the original by a name that will be the replacement"),
    Rule("SP523", "stale-binding", W, "Code still holds the original of a patched target"),
    Rule("SP524", "overridden-target", W, "Subclasses override the hooked method and bypass the hook"),
    Rule("SP525", "subclass-keeps-base", W, "Subclasses keep the class that a hook replaces"),
    Rule("SP526", "never-fires", E, "A hook is applied and never called"),
    Rule("SP527", "hook-without-owner", I, "A hook is registered while the module is imported and has no owner"),
    Rule("SP528", "two-spellings", W, "One target is hooked under two names"),
    Rule("SP529", "not-applied", E, "A registered hook was not applied"),
    Rule("SP531", "struct-target", E, "A hook on the construction of a msgspec struct never fires"),
    Rule("SP532", "registers-in-vain", E, "A call that is meant to register a hook raises, or registers nothing that can run"),
    Rule("SP601", "own-hooks-skipped", E, "SGLANG_PLATFORM makes SGLang skip the selected package's own hooks"),
    Rule("SP602", "inactive-vendor-hooks", W, "Hooks run although their package's platform is inactive"),
    Rule("SP603", "not-examined", I, "SGLang does not run this plugin here, so it was not run either"),
    Rule("SP604", "aborts-startup", E, "A failure in the selected platform's own package aborts startup"),
    Rule("SP605", "bad-backend", E, "A serve backend is not what `sglang serve` takes"),
    Rule("SP701", "import-missing", E, "A name imported from SGLang is not there"),
    Rule("SP702", "import-module-missing", E, "An imported module of SGLang is not there"),
    Rule("SP703", "attribute-missing", E, "An attribute read from a module or class of SGLang is not there"),
    Rule("SP704", "no-main-guard", W, "An offline script starts an engine without the __main__ guard"),
    Rule("SP705", "early-runtime-import", W, "An offline script imports the diffusion runtime before its __main__ guard"),
    Rule("SP706", "target-unreadable", I, "A hook's target cannot be read from the source"),
    Rule("SP707", "not-python", E, "A source file cannot be parsed"),
    Rule("SP708", "capability-unknown", E, "A platform sets a capability that this SGLang release does not have"),
    Rule("SP709", "writes-sealed-arguments", W, "A hook writes to server arguments that are read-only by then"),
    Rule("SP710", "flag-half-added", I, "A command-line flag is added, and its value reaches nobody"),
    Rule("SP711", "patches-nothing", W, "A monkey patch sets a name that SGLang does not have"),
    Rule("SP712", "own-import-missing", E, "The project imports a module or name that its own source does not have"),
    Rule("SP801", "package-left-out", E, "A package that the plugin needs is not part of its build"),
    Rule("SP802", "hard-pin", W, "A requirement pins torch or sglang and makes pip replace the vendor's build"),
    Rule("SP803", "nothing-declared", I, "The project declares no entry point that SGLang reads"),
    Rule("SP804", "metadata-unreadable", E, "The project's metadata cannot be read"),
    Rule("SP901", "explanation-differs", E, "Our explanation differs from what SGLang did"),
    Rule("SP902", "probe-lost", E, "A plugin could not be examined to the end"),
)

_BY_CODE = {rule.code: rule for rule in RULES}
_BY_SLUG = {rule.slug: rule for rule in RULES}


def rule(code: str) -> Rule:
    """Return the rule with this code or name, in any case.

    Raises:
        KeyError: there is none.
    """
    return _BY_CODE.get(code.upper()) or _BY_SLUG[code.lower()]


def near(word: str) -> tuple[str, ...]:
    """Return the codes or names, two at most, that a word which is neither may mean."""
    import difflib

    found = difflib.get_close_matches(word.lower(), _BY_SLUG, n=2) or difflib.get_close_matches(word.upper(), _BY_CODE, n=2)
    return tuple(found)
