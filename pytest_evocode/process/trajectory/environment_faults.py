"""Find in the output of a command what says that the environment lacks something that the project takes for granted."""

from __future__ import annotations

import re
from collections.abc import Callable

#: What says that something is not there, is too old or cannot be reached; meant by no product's own tests.
_SURE = (
    # Programs, packages and plug-ins to be installed.
    r"\b(?:executable(?: file)?|compiler|interpreter|command|tool|binary|program) (?:\S+ )?(?:was )?not found\b|"
    r"\b(?:is|are|was) not installed\b|\bto be installed\b|\b(?:but|and|package|extension) (?:is )?not installed\b|"
    r"\b(?:please|must|need to|try|can|run|by) (?:\w+ ){0,2}[`'\"]?(?:\w+ )?(?:install\b|pip install|npm (?:install|"
    r"ci)|"
    r"bundle install|composer (?:install|update)|mix deps\.get|yarn install|pnpm install|apt(?:-get)? install)|"
    r"^\s*(?:\$ )?(?:pip|pip3|npm|gem|brew|apt|apt-get|cargo|go|bundle|composer) install \S|"
    r"(?:[Pp]reset|[Mm]odule|[Pp]lug-?in|[Pp]ackage|[Ll]oader|[Rr]eporter|[Ee]xtension|[Dd]ependency|"
    r"[Cc]rate) (?![./<'\"]+/)"
    r"[\w@/-]+ (?:in the \w+ option )?(?:was |is )?not found|make sure (?:to install|(?:\S+ ){1,3}(?:is|"
    r"are) installed|you have (?:\S+ ){0,3}installed)|"
    r"Dependency \S+ not found|command '\S+' failed: No such file|"
    r"failed to run custom build command for `\S+ v[\d.]+`|not found in the pkg-config search path|"
    r"there is no package called|requires cgo|is required to build|install (?:a suitable|the \w+) (?:plugin|package)|"
    r"Missing required plugins: |Error importing plugin |Cannot find type definition file for '|"
    r"Could not find executable /(?:usr|opt)/|"
    r"Failed to spawn: `[\w.-]+`|[Cc]annot find an? \w+ installation",
    r"\bnpm (?:ERR!|error) code E(?:404|NOTFOUND|AI_AGAIN|RESOLVE)|Could not find a version that satisfies|"
    r"No matching distribution|Couldn't find any (?:versions|package)|\bNo module named '?(?:pytest|pip|coverage|"
    r"nose|tox|"
    r"mypy|ruff|setuptools|wheel|build|xdist|django|venv)'?\b|failed to (?:download|get|fetch)\b|failed to load source",
    r"\bCould not find (?:gem )?'?[\w-]+-[\d.]+.*in (?:any|locally)|in (?:any of the|locally installed) (?:sources|"
    r"gems)|"
    r"bundler: command not found|Bundler::GemNotFound|Unable to locate package|vendor/autoload\.php|"
    r"Unknown package \S+ in lockfile|dependencies? (?:could not|couldn't|cannot|can't) be (?:resolved|fetched|found)|"
    r"Could not (?:resolve|transfer|find) (?:all |any )?(?:artifact|dependenc|files|plugin|\S+:\S+:)|"
    r"Plugin \[?id: .* was not found|\bNU1\d{3}\b|\bNETSDK1\d{3}\b|unchecked dependency|"
    r"Can't continue due to errors on dep",
    r"no required module provides package|missing go\.sum entry|cannot find module providing|no matching package named",
    # Tool chains, and their versions.
    r"linker `\S+` not found|\bNo \w+_COMPILER could be found|Could NOT find \S+|Package '?\S+'?, required by|"
    r"No package '\S+' found|cannot find -l\S+|C\+* compiler cannot create executables|no acceptable C compiler|"
    r"JAVA_HOME is not (?:set|defined)|No Java runtime|No compiler is provided|\bxcrun: error|SDK location not found|"
    r"compatible \.?NET SDK|toolchain '\S+' is not installed|can't find crate for `(?:std|core)`|"
    r"target may not be installed",
    r"invalid (?:target|source) release|release version \d+ not supported|Unsupported class file major version|"
    r"UnsupportedClassVersionError|requires (?:a different )?(?:Python|python|Node(?:\.js)?|node|rustc|Go|go|Ruby|"
    r"ruby|PHP|"
    r"php|Java|JDK|Elixir|npm|cmake|CMake)\b|requires go >=|invalid go version '|(?:Python|Node|Node\.js|Ruby|PHP|"
    r"Java|Elixir|Go|Rust) "
    r"(?:version )?\S* ?(?:or (?:newer|higher|later|above)|is required)|EBADENGINE|engine \"?\w+\"? is incompatible|"
    r"Your Ruby version is|Your \w+ version \(?[\d.]+\)? does not satisfy|is not supported by the following package|"
    r"GLIBC\w*_[\d.]+'? not found|edition\w* is required|feature `edition\d+` is required|"
    r"older than the minimum required|"
    r"CMake [\d.]+ or higher is required|minimum (?:required|supported) (?:\w+ )?version",
    # Libraries and extensions that were not built, or for something else.
    r"without building the extension modules|extension modules? (?:has|have) not been (?:built|compiled)|build_ext|"
    r"cannot open shared object file|error while loading shared libraries|undefined symbol: |symbol lookup error|"
    r"Cannot find native binding|C.extensions? failed|NODE_MODULE_VERSION|was compiled against a different|"
    r"incompatible architecture|wrong ELF class|\bExec format error|cannot execute binary file|Illegal instruction|"
    r"numpy\.dtype size changed|DLL load failed|Could not locate the bindings file|UnsatisfiedLinkError|dlopen\(",
    # Settings, services, browsers.
    r"settings are not configured|ImproperlyConfigured: (?:Requested setting|The SECRET_KEY)|DJANGO_SETTINGS_MODULE|"
    r"Apps aren't loaded yet|Browser was not found|Executable doesn't exist at|Cannot connect to the Docker daemon|"
    r"docker\.errors\.DockerException|Could not find a valid Docker environment|no usable sandbox|"
    r"(?:chromedriver|geckodriver)\S* (?:executable )?(?:needs|not)|Unable to obtain driver|cannot open display|"
    r"unable to open X display|Missing X server",
    r"Module not found: .*Can't resolve '(?![./~]|@/|src/)[^']+'|[Ff]ailed to resolve import \"(?![./~]|@/|"
    r"src/)[^\"]+\"",
    r"PackageNotFoundError|No package metadata|for another platform|lock file version \d+|parse lock file|"
    r"incompatible lock ?file|"
    r"lockfile .*(?:not (?:up to date|present)|out of date|frozen)|doesn't seem to be present in your lockfile",
    # Other programs that hold something.
    r"EADDRINUSE|[Aa]ddress already in use|port \d+ is (?:already )?(?:in use|allocated|taken)|Could not get lock|"
    r"Timeout waiting to lock|in use by another|Another (?:process|instance|\w+ process)|"
    r"already used, make sure that nothing is running|(?:port|url) is already (?:used|taken)|"
    r"[Dd]aemon (?:has )?disappeared|daemon was (?:killed|stopped)|connection to server .* failed|disk I/O error|"
    r"ConnectionNotEstablished|Unable to acquire (?:the )?(?:\w+ )?lock|lock file .* exists",
    # No room, no rights.
    r"(?i:no space left on device)|ENOSPC|Disk quota exceeded|Cannot allocate memory|JavaScript heap out of memory|"
    r"java\.lang\.OutOfMemoryError|^Killed$|: Killed\b|signal: 9, SIGKILL|exit code 137|[Oo]ut of memory|\boom-kill|"
    r"(?i:read-only file system)|EROFS|Too many open files|EMFILE|Resource temporarily unavailable|"
    r"unable to create (?:native )?"
    r"thread|System limit for number of file watchers",
    # What runners and frameworks of single languages say of what they lack: JavaScript,
    r"Test environment \S+ cannot be found|couldn't find the (?:plugin|config|parser)|Failed to load (?:plugin|"
    r"parser|config) '|ERR_UNKNOWN_FILE_EXTENSION|ERR_UNKNOWN_BUILTIN_MODULE|digital envelope routines|"
    r"Cannot find module (?:@[\w.-]+/)?[\w.-]+\. npm has a bug|node_modules missing|\bgyp ERR!|invalid ELF header|"
    r"\"packageManager\": |current global version of|ERR_PNPM_(?:NO_OFFLINE|OUTDATED_LOCKFILE|UNSUPPORTED_ENGINE|FETCH|"
    r"META_FETCH|NO_MATCHING|LOCKFILE)\w*|\bYN00\d\d: .*(?:isn't supported|failed|couldn't be)|"
    r"could not find a copy of|"
    r"(?:binary|executable) (?:is |was )?(?:missing|not found)|Host system is missing dependencies|"
    r"Could not find (?:Chrome|Chromium|Firefox|browser)|No binary for \w+ browser|Failed to launch the browser|"
    r"cannot find Chrome binary|session not created|running as root without --no-sandbox|Cannot start (?:Chrom|Firef)|"
    r"\bspawn [\w.-]+ ENOENT|bad option: --(?:experimental|env-file|import|test)|Xvfb|"
    # Python,
    r"Error loading \S+(?: or \S+)? module|externally-managed-environment|[Ff]ailed building wheel|"
    r"Could not build wheels|subprocess-exited-with-error|interpreter not found|"
    r"Could not find an? (?:\w+ )?interpreter|"
    r"could not find python interpreter|InterpreterNotFound|Poetry could not find|no display name and no \$DISPLAY|"
    r"could not connect to display|_tkinter\.TclError|qt\.qpa|libGL error|no such module: fts|"
    r"(?:but|which) (?:is )?incompatible|VersionConflict|DistributionNotFound|ContextualVersionConflict|"
    r"No such file or directory: '(?!\w+_)[a-z][\w-]*'|requires? (?:the )?(?:\w+ )?'?[\w.-]+'? (?:library|package|"
    r"plugin|module)(?: to be| which is| that is|,)|Using \S+ requires|"
    # Java, Kotlin, .NET,
    r"No matching toolchains? found|in offline mode|Could not (?:GET|HEAD|download|install Gradle)|"
    r"Failed to collect dependencies|Non-resolvable (?:parent|import)|requires JVM \d+|JAVA_HOME is set to an invalid|"
    r"JAVA_HOME environment variable is not|Could not initialize class org\.codehaus|ANDROID_(?:HOME|SDK_ROOT)|"
    r"does not support targeting|not possible to find any compatible framework|must install or update \.NET|"
    r"workloads? must be installed|Unable to find package|Gradle version \S+ is required|Unable to find a javac|"
    # Ruby, PHP, Elixir,
    r"Gem::\w*(?:Error|Exception)\b|Could not find '?bundler|extensions are not built|Your bundle only supports|"
    r"extensions?,? (?:\S+ )?(?:is|are) (?:not available|missing|not loaded|required|disabled)|"
    r"missing from your system|PHP extension|Composer detected issues|"
    r"Your (?:requirements|lock file) (?:could not|does not)|Call to undefined function (?:\w+\\)*(?:mb_|curl_|"
    r"simplexml_|image|"
    r"bc(?:add|mul|div|sub|comp|pow|mod)|ctype_|gmp_|intl|iconv|sodium_|pcntl_|posix_|openssl_|xml_|utf8_|apcu_|"
    r"json_|numfmt_|gz|zip_|ldap_)|Class \"(?:PDO|ZipArchive|DOMDocument|SQLite3|Redis|Memcached|NumberFormatter|"
    r"IntlDateFormatter|Collator|SoapClient|XMLReader|XMLWriter|Imagick|mysqli|SimpleXMLElement)\" not found|"
    r"No code coverage driver|dependency is not available|could not compile dependency|"
    r"Could not find an SCM|Could not start Hex|Hex is|hexpm|"
    # Swift, Dart, Haskell, Perl, Lua, Rust, Go, C.
    r"no such module 'XCTest'|unable to find utility|using Swift tools version|[Ff]ailed to clone repository|"
    r"requires SDK version|version solving failed|current Dart SDK|Unable to locate Android|"
    r"No (?:supported )?devices? found|"
    r"pub get failed|member of the hidden package|dependencies needed|Could not load module|"
    r"you may need to install the|"
    r"luarocks|^lua\S*: .*module '[\w-]+' not found|Could not find directory of OpenSSL|is not a registered|"
    r"component .* (?:is )?(?:not|un)available|"
    r"cannot be built because it requires|rustc [\d.]+ is not supported|cannot find GOROOT|"
    r"build constraints exclude all|"
    r"-race is not supported|By not providing \"Find\w+\.cmake\"|Could not find a package configuration file|"
    r"generator .* (?:could not|does not)|Program '?\S+'? not found|Dependency \"\S+\" not found|"
    r"unable to find (?:library|dynamic system library)|ld: library not found|ld: cannot find|"
    # Services, containers, certificates.
    r"Cannot find module '\S*/node_modules/|Temporary failure resolving|main class org\.(?:apache|gradle)|"
    r"fatal error: '?(?:std\w+|string|math|errno|ctype|time|unistd|Python|iostream|vector|"
    r"sys/\w+)(?:\.h)?'?(?:: No| file)|"
    r"checksum mismatch|verifying go\.mod|NoDatabaseError|could not find your database|supports only \w+ ~>|"
    r"seem to have been installed|"
    r"[Ff]ailed to (?:fetch|lookup|look up|download|install)\b|dns error|manifest for '.*' failed to load|"
    r"^Command not found: \w|'\S+' is not recognized as|"
    r"[Ii]s the docker daemon running|Error response from daemon|pull access denied|manifest unknown|"
    r"failed to resolve source metadata|ImagePullBackOff|x509: |unable to get local issuer|rate limit exceeded|"
    r"role \"\w+\" does not exist|database \"\w+\" does not exist|permission denied to create|[Dd]atabase is locked|"
    r"database file is locked|extension \"\w+\" is not available|could not open extension control|NoBrokersAvailable|"
    r"ServerSelectionTimeoutError|DBConnection\.ConnectionError|Error \d+ connecting to|SASL|Can't start server|"
    r"no pg_hba\.conf entry|the database system is (?:starting up|shutting)|Failed to move to new namespace|"
    r"seccomp|not permitted in this sandbox|cannot open (?:/dev|display)|bwrap: |CUDA (?:driver|error|"
    r"is not available)|"
    r"no CUDA-capable|libcuda|[Nn]o NVIDIA|(?:service|[Cc]ontainer) \S+ is not running",
    # Locales, time zones, terminals.
    r"unsupported locale setting|ZoneInfoNotFoundError|No time zone found|UnknownTimeZone|cannot change locale|"
    r"the input device is not a TTY|not a tty|setlocale: LC_\w+",
)
#: What can also be what a test is about: it counts only in the line of an error, where no assertion failed.
_NETWORK = (
    r"[Cc]ould not resolve (?:host|proxy)|Name or service not known|name resolution|getaddrinfo|nxdomain|NXDOMAIN|"
    r"Network is unreachable|ENETUNREACH|EHOSTUNREACH|No route to host|\bENOTFOUND\b|EAI_AGAIN|Max retries exceeded|"
    r"[Cc](?:an't|annot|ould not) reach |no such host|server misbehaving|\bdial (?:tcp|unix)\b|i/o timeout|"
    r"TLS handshake|Unknown host|"
    r"UnknownHostException|"
    r"Couldn't (?:resolve|connect to) |Failed to establish a new connection|spurious network error|"
    r"(?i:connection (?:timed out|refused|reset))|connect: connection refused|ECONNREFUSED|ETIMEDOUT|Read timed out|"
    r"Failed to connect to|[Cc]ould not connect to|[Cc]an't connect to|Unable to connect to|"
    r"Connection to \S+ (?:failed|refused)|"
    r"Is the server running|SQLSTATE\[HY000\] \[20\d\d\]|Communications link failure|MongoNetworkError|"
    r"CERTIFICATE_VERIFY_FAILED|PKIX path building failed|certificate (?:has expired|verify failed)|"
    r"self.signed certificate|"
    r"Proxy Authentication Required|40[137] (?:Unauthorized|Forbidden|Proxy)|(?:got|error:) 40[137]|toomanyrequests|"
    r"Too Many Requests|"
    r"unable to access 'http|Unable to load the service index|Could not read Username|password authentication failed|"
    r"(?i:permission (?:\S+ )?(?:\S+ )?denied)|EACCES|EPERM|Operation not permitted|Access denied|AccessDenied|"
    r"(?:environment|env) variables?\b|\b(?:(?:API|api|[Ee]ncryption|[Ss]ecret|[Aa]ccess|[Pp]rivate|"
    r"[Ll]icen[cs]e)[ _-]?key|token|secret|credentials?|password|licen[cs]e)\b.*\b(?:must be set|"
    r"not (?:set|specified|provided|configured|found)|missing|has been specified|is required)|could not find driver|"
    r"\b[A-Z][A-Z0-9]*_[A-Z0-9_]+ (?:is|was|must be|not|environment variable|needs to be) (?:not )?(?:set|defined|"
    r"configured|missing|required|provided)\b|"
    r"[Mm]issing (?:required )?(?:\w+ )?(?:variables?:? )?[A-Z][A-Z0-9]*_[A-Z0-9_]+\b|"
    r"[Cc]ould not fetch environment variable|(?:No|Missing|invalid) (?:API key|credentials|access token)|"
    r"[Uu]nable to locate credentials|NoCredentialsError"
)
_SURELY = re.compile("|".join(_SURE), re.MULTILINE)
#: A file of a library that the interpreter of this machine cannot read.
_UNREADABLE_LIBRARY = re.compile(
    r"^(?:file://)?/?\S*(?:/node_modules|/site-packages|/vendor/\w+|/gems)/\S+:\d+\n(?:.*\n){0,5}\s*SyntaxError: |"
    r"(?:Parse error|ParseError): .* in \S*/vendor/|[Dd]etails:\s+\S*/node_modules/\S+:\d+",
    re.MULTILINE,
)
_IN_AN_ERROR = re.compile(_NETWORK)
#: A setting that Python reads from its environment, and that is not there.
_NO_VARIABLE = re.compile(r"KeyError: '[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+'")
_OS_ENVIRON = re.compile(r"<frozen os>|/os\.py\"?[,:]|os\.environ\[")
#: Fixtures of well-known plug-ins of pytest.
_FIXTURES_OF_PLUGINS = re.compile(
    r"fixture '(?:mocker|benchmark|httpx_mock|requests_mock|respx_mock|freezer|aiohttp_client|event_loop|qtbot|"
    r"snapshot|"
    r"live_server|faker|datadir|shared_datadir|httpserver|postgresql|mongodb|django_db_setup|settings|rf|admin_client|"
    r"page|browser|celery_app|class_mocker|session_mocker|subtests|fs|responses)' not found"
)
_MISSING_MODULE = re.compile(r"(?:ModuleNotFoundError|ImportError|Original error was): No module named '?([\w.]+)'?")
_MISSING_NAME = re.compile(
    r"ImportError: cannot import name '?\w+'? from (?:partially initialized module )?'?([\w.]+)'?|"
    r"AttributeError: module '([\w.]+)' has no attribute"
)
#: A package of Node's; paths and their usual abbreviations belong to the project.
_MISSING_PACKAGE = re.compile(r"Cannot find (?:module|package) '(?![./~]|@/|src/|app/|lib/)[^']+'")
#: Advice of package managers that has nothing to do with a failure.
_NOTICE = re.compile(r"^(?:npm (?:notice|warn|WARN)|\[notice\]|WARNING: |note: run with ).*$", re.MULTILINE)
_MISSING_GEM = re.compile(r"cannot load such file -- ([^\s/.][\w/-]*)")
#: A header of the system, as the compiler quotes the line that asks for it.
_SYSTEM_HEADER = re.compile(
    r"fatal error: '?[\w./+-]+'?(?:: No such file or directory| file not found)[^<\n]*\n.*#\s*include\s*<"
)
#: A frame of Python's, as the interpreter or pytest prints it.
_MODULE_FRAME = re.compile(
    r'^(?:E\s+)?\s*(?:File "(?P<file>[^"]+)", line \d+, in (?P<of_file>\S+)|'
    r"(?P<short>\S+\.py):\d+: in (?P<of_short>\S+))$",
    re.MULTILINE,
)
_LIBRARY = re.compile(r"/(?:site-packages|dist-packages|python\d[\d.]*)/")
#: A line of an assertion, or of source that a runner quotes.
_ASSERTION = re.compile(
    r"AssertionError|AssertionFailedError|\bassert|[Ee]xpect(?:ed|ation)?\b|\b[Aa]ctual\b|\b(?:got|want|left|"
    r"right)\b ?[:=]|"
    r"\b(?:got|want|wanted|should)\b|_test\.go:\d+: (?!(?:[\w ()]+: )*dial (?:tcp|unix) \S+:\d{1,4}: )|to (?:equal|"
    r"be|match|include)\b|^\s*>|^\s*\d+ \||^\s*\|"
)
_ASSERTION_FAILED = re.compile(
    r"^E\s+(?:AssertionError|assert)\b|^AssertionError\b|AssertionFailedError|ERR_ASSERTION|Failed asserting|"
    r"^\s*(?:Expected|expected)\b.*(?:\n.*)?\b(?:Received|but was|got|Actual|actual|to)\b|Failure/Error: .*expect|"
    r"Assertion with .* failed|assertion .* failed|^\s*(?:left|right): ",
    re.MULTILINE,
)

#: An error that a file of the project raises by itself.
_RAISED_ON_PURPOSE = re.compile(
    r"^(?!.*-packages/|/usr/)(?:\S+\.py:\d+: in .*|"
    r"\s+File .*)\n\s+raise \w+\(.*\n(?:\s*\^+\n)?(?:E\s+)?[\w.]+: ",
    re.MULTILINE,
)
#: What shows that something of the project was reached: a line of a file, code, a test, a target, its configuration.
_OF_THE_PROJECT = re.compile(
    r"\.[A-Za-z]{1,6}['\"]?(?::\d+|\(\d+|, line \d+| line \d+| on line)|\bundefined reference|could not compile|"
    r"(?i:\bsyntax error|\bunexpected|cycle|\bassert|expected|\btests? failed|\bFAIL\b|\bfailing\b|failures?:)|"
    r"[\"'`(]\.{1,2}/\w|\bduplicate|\bmultiple definition|\bwarnings? treated|Compiling \S+ v|: error: |error\[|"
    r"\berror TS\d+|"
    r"\brelation \"|\bcolumn\b|SystemCheckError|\bmigrations?\b|due to \d+ previous|ELIFECYCLE|problems? \(\d+ error|"
    r"failed to compute cache key|did not complete successfully"
)
#: Words of package managers, tool chains and services.
_OF_THE_TOOL = re.compile(
    r"(?i)\b(?:versions?|install\w*|download\w*|fetch\w*|resolve[ds]?|registry|packages?|dependenc(?:y|ies)|artifacts?|"
    r"toolchains?|compilers?|sdk|runtime|interpreters?|network|hosts?|dns|proxy|connect\w*|sockets?|daemon|"
    r"permissions?|"
    r"privileges?|credentials?|licen[cs]e|certificates?|devices?|memory|disk|quota|locked|locks?|ports?|display|"
    r"browsers?|"
    r"drivers?|librar(?:y|ies)|plugins?|extensions?|binar(?:y|ies)|incompatible|unsupported|architecture|kernel|"
    r"sandbox|"
    r"containers?|images?|mirror|cache|offline|timed out)\b"
)

#: Two values that a test has compared, in the words of runners that print both; Python has other assertions, too.
_COMPARED = re.compile(
    r"^(?:E\s+(?:AssertionError\b|assert )|AssertionError\b)|_test\.go:\d+: .*[,;:] want(?:ed)?\b|"
    r"expect\(received\)|Failed asserting that|^[# ]*-- .* differs? --|^\+\+\+ Actual|"
    r"^\s*(?:Expected|expected)\b.*\n\s*(?:Received|Actual|actual|got|but)\b|^\s*left: .*\n\s*right: ",
    re.MULTILINE,
)


def is_environments(output: str, is_ours: Callable[[str], bool]) -> bool:
    """Return whether an output says that the environment is at fault.

    Args:
        output: What a command printed that failed.
        is_ours: Whether a top-level Python module belongs to the workspace.
    """
    output = _NOTICE.sub("", output)
    if compares(output):
        return False  # What is printed may be what a test compares.
    if _SURELY.search(output) or _SYSTEM_HEADER.search(output) or _FIXTURES_OF_PLUGINS.search(output):
        return True
    if _UNREADABLE_LIBRARY.search(output) or _breaks_in_a_plugin(output):
        return True
    if _NO_VARIABLE.search(output) and _OS_ENVIRON.search(output):
        return True
    if _is_lacking_a_module(output, is_ours) or _fails_to_import_a_library(output):
        return True
    if _ASSERTION_FAILED.search(output):
        return False
    if _RAISED_ON_PURPOSE.search(output):
        return False
    return any(_IN_AN_ERROR.search(line) and not _ASSERTION.search(line) for line in output.splitlines())


def compares(output: str) -> bool:
    """Return whether a runner says that an assertion failed, or shows what a test has compared.

    >>> compares("E   assert 1 == 2"), compares("a_test.go:5: Sum() = 1, want 2"), compares("E   KeyError: 'a'")
    (True, True, False)
    """
    return _COMPARED.search(output) is not None


def _fails_to_import_a_library(output: str) -> bool:
    """Return whether Python broke off in a library's own module that was being imported."""
    frames = list(_MODULE_FRAME.finditer(output))
    if not frames:
        return False
    last = frames[-1]
    return (last["of_file"] or last["of_short"]) == "<module>" and bool(_LIBRARY.search(last["file"] or last["short"]))


def gets_nowhere(output: str) -> bool:
    """Return whether a tool complains of what it works with, and got to no file and no test of the project.

    This is asked last, of outputs in unknown words.
    """
    if _OF_THE_PROJECT.search(output) or _ASSERTION_FAILED.search(output):
        return False
    return _OF_THE_TOOL.search(output) is not None


def _breaks_in_a_plugin(output: str) -> bool:
    """Return whether pytest itself broke off, in a library and in no file of the project."""
    lines = [line for line in output.splitlines() if line.startswith("INTERNALERROR>") and 'File "' in line]
    return bool(lines) and all("-packages/" in line or "/lib/python" in line for line in lines)


#: Modules that tests bring with them.
_OF_TESTS = ("test", "tests", "conftest", "helpers", "test_helpers", "test_utils", "factories", "fixtures")


def _is_lacking_a_module(output: str, is_ours: Callable[[str], bool]) -> bool:
    """Return whether a library, or a name of it, is what an error is about."""
    for pattern in (_MISSING_MODULE, _MISSING_NAME):
        missing = pattern.search(output)
        name = next(filter(None, missing.groups()), "").partition(".")[0] if missing else ""
        if name and not is_ours(name) and name not in _OF_TESTS:
            return True
    gem = _MISSING_GEM.search(output)
    return _MISSING_PACKAGE.search(output) is not None or (
        gem is not None and not gem[1].endswith(("_helper", "helper")) and "LoadError" in output
    )
