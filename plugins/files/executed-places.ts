/**
 * Files that the file tools never write: those that other programs run or obey by their presence, without
 * anybody asking for it (git, a shell, an editor, direnv, a package manager, cron, SSH, CI, Parley itself).
 * Source code and build files (`package.json`, a Makefile) stay writable: they run when somebody runs the
 * project.
 */
import { fileProblem } from './file-problem.ts';

/** Names of folders and files, anywhere in the workspace, as `fold` writes them. */
const names: ReadonlySet<string> = new Set(
  [
    // Git: its own folder, hooks beside it, and HEAD, without which no folder passes for a repository.
    '.git .githooks .husky .gitconfig head lefthook.yml lefthook.yaml .lefthook.yml .lefthook.yaml .lefthook',
    '.pre-commit-config.yaml .hg .svn .jj',
    // Shells, logins and other programs' start-up files.
    '.bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile .zlogin',
    '.zlogout .kshrc .cshrc .tcshrc .login .logout .inputrc .xinitrc .xprofile .xsession .xsessionrc',
    '.pam_environment .netrc .rhosts .forward .screenrc .tmux.conf .curlrc .wgetrc .mailcap .pythonrc',
    '.gdbinit .lldbinit .psqlrc .sqliterc .irbrc .rprofile',
    // Folders of a home: SSH, keys, autostart, systemd's user units, a user's own programs.
    '.ssh .gnupg .config .local .aws .kube .docker authorized_keys',
    '.cron crontab cron.d cron.hourly cron.daily cron.weekly cron.monthly',
    // Environments that are loaded by entering a folder.
    '.env .envrc .mise.toml mise.toml .mise .direnv sitecustomize.py usercustomize.py',
    // Editors and agents, whose settings hold tasks and hooks.
    '.vscode .vscode-server .idea .zed .fleet .devcontainer .devcontainer.json .cursor .claude .codex .gemini',
    '.mcp.json .vim .nvim .vimrc .gvimrc .exrc .nvimrc .nvim.lua .lvimrc .emacs .emacs.d .dir-locals.el',
    // Package managers and build tools that read settings wherever they are called.
    '.npmrc .yarnrc .yarnrc.yml .yarn .pnpmfile.cjs .pnp.cjs .pnp.loader.mjs .cargo .gradle .mvn .m2 .bundle',
    '.gemrc .condarc .pip .pypirc',
    // Run on a push.
    '.github .gitlab .gitlab-ci.yml .circleci .woodpecker .woodpecker.yml .drone.yml .forgejo .gitea .buildkite',
    // Parley's own settings.
    'parley.config.json',
  ]
    .join(' ')
    .split(' '),
);

/** Folders at the top of a workspace from which Parley loads what it runs. */
const ownFolders: ReadonlySet<string> = new Set(['hooks', 'skills', 'plugins']);

const patterns: readonly RegExp[] = [
  // A bare repository, and the short name that NTFS gives `.git`.
  /\.git$/,
  /^git~\d+$/,
  // `.env.local` and its like are loaded as `.env` is; samples are read by people.
  /^\.env\.(?!example$|sample$|template$|dist$)/,
  /\.code-workspace$/,
  /\.pth$/,
];

/** Throws ParleyError `tool_failed` for a path that leads to, or through, such a place. */
export function refuseExecuted(segments: readonly string[], path: string): void {
  const folded = segments.map(fold);
  const isOwn = folded[0] !== undefined && ownFolders.has(folded[0]);
  if (!isOwn && !folded.some(isExecuted)) return;
  throw fileProblem(
    `${path} isn't written: other programs run or obey what is there without being asked. Ask the owner to change it.`,
  );
}

/** Throws for a file that can be run as it is: its mode has an execute bit. */
export function refuseExecutable(mode: number, path: string): void {
  if ((mode & 0o111) === 0) return;
  throw fileProblem(
    `${path} isn't written: it is executable, and the file tools don't change programs. Ask the owner to change it.`,
  );
}

function isExecuted(name: string): boolean {
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
