/**
 * Files that the file tools never write: those that other programs run or obey by their presence, without
 * anybody asking for it (git, a shell, an editor, direnv, a package manager, cron, SSH, CI, Parley itself).
 * Programs look for hidden names above all, more of them than a list could hold: so a hidden name is refused unless
 * it is known to be harmless, and any other unless it is known not to be. Source code and build files
 * (`package.json`, a Makefile) stay writable: they run when somebody runs the project.
 */
import { type Entry, findEntry } from './descriptor.ts';
import { fileProblem } from './file-problem.ts';

/** Hidden names that no program runs or obeys by their presence, as `fold` writes them. */
const harmless: ReadonlySet<string> = new Set(
  [
    // Programs that `.gitattributes` switches on have to be defined in git's own settings.
    '.gitignore .gitattributes .gitkeep .keep .mailmap .git-blame-ignore-revs',
    '.dockerignore .npmignore .eslintignore .prettierignore .stylelintignore .gcloudignore .vercelignore',
    '.editorconfig .clang-format .nvmrc .node-version .python-version .ruby-version .java-version',
    '.env.example .env.sample .env.template .env.dist .well-known .nojekyll .notes',
  ]
    .join(' ')
    .split(' '),
);

/** Names without a dot in front, of folders and files, anywhere in the workspace. */
const names: ReadonlySet<string> = new Set(
  [
    // Without HEAD no folder passes for a repository of git's.
    'head captainhook.json prek.toml',
    // Cron, SSH, and what macOS and Windows start.
    'crontab anacrontab cron.d cron.hourly cron.daily cron.weekly cron.monthly authorized_keys authorized_keys2',
    'launchagents launchdaemons autorun.inf desktop.ini',
    // Environments that are loaded by entering a folder, or by an editor that opens it.
    'mise devbox.json devenv.nix devenv.yaml devfile.yaml flake.nix shell.nix pyvenv.cfg activate_this.py',
    'sitecustomize.py usercustomize.py',
    // Editors, agents and linters, whose settings hold commands.
    '_vimrc _gvimrc _exrc mcp.json opencode.json opencode.jsonc crush.json pylintrc',
    // Tools that read settings wherever they are called.
    'bunfig.toml pnpmfile.cjs pip.conf ansible.cfg latexmkrc web.config',
    // Run on a push.
    'jenkinsfile netlify.toml vercel.json',
    // Parley's own settings.
    'parley.config.json',
  ]
    .join(' ')
    .split(' '),
);

/** Folders at the top of a workspace from which Parley loads what it runs. */
const ownFolders: ReadonlySet<string> = new Set(['hooks', 'skills', 'plugins']);

const patterns: readonly RegExp[] = [
  // A bare repository.
  /\.git$/,
  // The short name of a hidden one on a disk of Windows: `git~1`.
  /^[^.~]{1,6}~\d+(\.[^.]{0,3})?$/,
  /^lefthook(-local)?\.(ya?ml|toml|jsonc?)$/,
  /^mise(\.[^.]+){0,2}\.toml$/,
  // An environment of Python's, which shells and editors load.
  /^activate(\.(fish|csh|nu|ps1|bat|xsh))?$/,
  /^(azure-pipelines|bitbucket-pipelines|appveyor|cloudbuild|buildspec)\.ya?ml$/,
  /^(docker-)?compose\.override\.ya?ml$/,
  /\.(code-workspace|sublime-project|desktop|pth)$/,
];

/** Throws ParleyError `tool_failed` for a path that leads to, or through, such a place. */
export function refuseExecuted(segments: readonly string[], path: string): void {
  const folded = segments.map(fold);
  const isOwn = folded[0] !== undefined && ownFolders.has(folded[0]);
  if (isOwn || folded.some(isExecuted)) throw notWritten(path);
}

/**
 * Throws for a folder that git takes for a repository, whatever its name: a bare one, or one that `.git` elsewhere
 * points to. Its settings name programs, which git then runs.
 */
export async function refuseRepository(folder: Entry): Promise<void> {
  if ((await findEntry(folder, 'HEAD')) === undefined) return;
  for (const name of ['objects', 'commondir'])
    if ((await findEntry(folder, name)) !== undefined) throw notWritten(folder.path);
}

/** Throws for a file that can be run as it is: its mode has an execute bit. */
export function refuseExecutable(mode: number, path: string): void {
  if ((mode & 0o111) === 0) return;
  throw fileProblem(
    `${path} isn't written: it is executable, and the file tools don't change programs. Ask the owner to change it.`,
  );
}

function notWritten(path: string): Error {
  return fileProblem(
    `${path} isn't written: other programs run or obey what is there without being asked. Ask the owner to change it.`,
  );
}

function isExecuted(name: string): boolean {
  if (name.startsWith('.')) return !harmless.has(name);
  return names.has(name) || patterns.some((pattern) => pattern.test(name));
}

/**
 * One spelling of all that a file system may take for the same name: letter case, compatibility forms,
 * characters that are ignored (as on HFS+), and what Windows cuts off at the end.
 */
function fold(name: string): string {
  const visible = name.normalize('NFKC').replace(/[\p{Cf}\p{Cc}\p{Default_Ignorable_Code_Point}]/gu, '');
  return visible
    .toUpperCase()
    .toLowerCase()
    .replace(/:.*$/s, '')
    .replace(/[. ]+$/, '');
}
