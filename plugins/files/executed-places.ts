/**
 * Files that the file tools never write: those that other programs run or obey just because they exist, without
 * anyone asking (git, a shell, an editor, direnv, a package manager, cron, SSH, CI, Parley itself). Programs mostly
 * look for hidden names, more of them than could be listed, so a hidden name is refused unless it is known to be
 * harmless, and any other name is allowed unless it is known to be harmful. Source code and build files
 * (`package.json`, a Makefile) stay writable: they only run when someone runs the project.
 */
import { type Entry, findEntry } from './descriptor.ts';
import { fileProblem } from './file-problem.ts';

/** Hidden names that no program runs or obeys just because they exist, as normalized by `fold`. */
const harmless: ReadonlySet<string> = new Set(
  [
    // Programs that `.gitattributes` enables must be defined in git's own settings.
    '.gitignore .gitattributes .gitkeep .keep .mailmap .git-blame-ignore-revs',
    '.dockerignore .npmignore .eslintignore .prettierignore .stylelintignore .gcloudignore .vercelignore',
    '.editorconfig .clang-format .nvmrc .node-version .python-version .ruby-version .java-version',
    '.env.example .env.sample .env.template .env.dist .well-known .nojekyll .notes',
  ]
    .join(' ')
    .split(' '),
);

/** Names of folders and files without a leading dot, anywhere in the workspace. */
const names: ReadonlySet<string> = new Set(
  [
    // Without HEAD, git doesn't accept a folder as a repository.
    'head captainhook.json prek.toml',
    // Cron, SSH, and programs started by macOS and Windows.
    'crontab anacrontab cron.d cron.hourly cron.daily cron.weekly cron.monthly authorized_keys authorized_keys2',
    'launchagents launchdaemons autorun.inf desktop.ini',
    // Environments loaded when a shell enters a folder or an editor opens it.
    'mise devbox.json devenv.nix devenv.yaml devfile.yaml flake.nix shell.nix pyvenv.cfg activate_this.py',
    'sitecustomize.py usercustomize.py',
    // Editors, agents and linters, whose settings contain commands.
    '_vimrc _gvimrc _exrc mcp.json opencode.json opencode.jsonc crush.json pylintrc',
    // Tools that read settings from the folder they are run in.
    'bunfig.toml pnpmfile.cjs pip.conf ansible.cfg latexmkrc web.config',
    // Run on a push.
    'jenkinsfile netlify.toml vercel.json',
    // Parley's own settings.
    'parley.config.json',
  ]
    .join(' ')
    .split(' '),
);

/** Folders at the top of a workspace from which Parley loads code. */
const ownFolders: ReadonlySet<string> = new Set(['hooks', 'skills', 'plugins']);

const patterns: readonly RegExp[] = [
  // A bare repository.
  /\.git$/,
  // The short name of a hidden entry on a Windows disk: `git~1`.
  /^[^.~]{1,6}~\d+(\.[^.]{0,3})?$/,
  /^lefthook(-local)?\.(ya?ml|toml|jsonc?)$/,
  /^mise(\.[^.]+){0,2}\.toml$/,
  // A Python environment, which shells and editors load.
  /^activate(\.(fish|csh|nu|ps1|bat|xsh))?$/,
  /^(azure-pipelines|bitbucket-pipelines|appveyor|cloudbuild|buildspec)\.ya?ml$/,
  /^(docker-)?compose\.override\.ya?ml$/,
  /\.(code-workspace|sublime-project|desktop|pth)$/,
];

/** Throws ParleyError `tool_failed` for a path that leads to or through such a name. */
export function refuseExecuted(segments: readonly string[], path: string): void {
  const folded = segments.map(fold);
  const isOwn = folded[0] !== undefined && ownFolders.has(folded[0]);
  if (isOwn || folded.some(isExecuted)) throw notWritten(path);
}

/**
 * Throws for a folder that git accepts as a repository, whatever its name: a bare one, or one that a `.git` elsewhere
 * points to. Its settings may name programs, which git then runs.
 */
export async function refuseRepository(folder: Entry): Promise<void> {
  if ((await findEntry(folder, 'HEAD')) === undefined) return;
  for (const name of ['objects', 'commondir'])
    if ((await findEntry(folder, name)) !== undefined) throw notWritten(folder.path);
}

/** Throws for an executable file: one whose mode has an execute bit. */
export function refuseExecutable(mode: number, path: string): void {
  if ((mode & 0o111) === 0) return;
  throw fileProblem(
    `${path} isn't written: it is executable, and the file tools don't change programs. Ask the owner to change it.`,
  );
}

function notWritten(path: string): Error {
  return fileProblem(
    `${path} isn't written: other programs run or obey such files without being asked. Ask the owner to change it.`,
  );
}

function isExecuted(name: string): boolean {
  if (name.startsWith('.')) return !harmless.has(name);
  return names.has(name) || patterns.some((pattern) => pattern.test(name));
}

/**
 * Normalizes what a file system may treat as the same name: letter case, compatibility forms, ignored characters (as
 * on HFS+), and endings that Windows removes.
 */
function fold(name: string): string {
  const visible = name.normalize('NFKC').replace(/[\p{Cf}\p{Cc}\p{Default_Ignorable_Code_Point}]/gu, '');
  return visible
    .toUpperCase()
    .toLowerCase()
    .replace(/:.*$/s, '')
    .replace(/[. ]+$/, '');
}
