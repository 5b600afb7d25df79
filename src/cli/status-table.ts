import { chatCommand } from '#channel-kit/own-commands.ts';

export type StatusTable = {
  /** Absent in a process without a page. */
  readonly url?: string;
  /** Where a phone on the same network finds the page; absent when it is only served to this machine. */
  readonly phoneUrl?: string;
  /** Where the process answers `/healthz`, `/readyz` and `/metrics`. */
  readonly healthUrl?: string;
  readonly model: { readonly name: string; readonly isDemo: boolean };
  channels(): readonly {
    readonly id: string;
    readonly state: { readonly kind: string; readonly account?: string; readonly reason?: string };
  }[];
  /** Returns why it hasn't started yet; undefined once it runs. */
  waiting(): string | undefined;
  readonly plugins: readonly { readonly kind: string; readonly plugin: string; readonly problem?: string }[];
};

export type TableDetails = {
  /** Absent in a process without a page. */
  readonly signInLink: string | undefined;
  /** Where the settings come from. */
  readonly settings: string;
};

/** Renders the table of `npm start`: the page, the settings files, the model, and which channels are on and why. */
export function renderStatusTable(status: StatusTable, { signInLink, settings }: TableDetails): string {
  const waiting = status.waiting();
  if (waiting !== undefined) {
    const page = status.url === undefined ? '' : `\n\n  page  ${status.url}`;
    return `\n  ${waiting}${page}\n\n`;
  }
  const page: readonly (readonly [string, string])[] =
    status.url === undefined || signInLink === undefined
      ? [
          ['page', 'none (worker)'],
          ...(status.healthUrl === undefined ? [] : [['health', `${status.healthUrl}/readyz`] as const]),
        ]
      : [
          ['page', status.url],
          ...(status.phoneUrl === undefined ? [] : [['on a phone', status.phoneUrl] as const]),
          ['sign in', `${signInLink} (works once, for 15 minutes)`],
          ['chat', chatCommand],
        ];
  const rows: readonly (readonly [string, string])[] = [
    ...page,
    ['settings', settings],
    [
      'model',
      status.model.isDemo
        ? 'demo (a script; set ANTHROPIC_API_KEY or OPENAI_API_KEY for a real model)'
        : status.model.name,
    ],
    ...status.channels().map(({ id, state }) => [id, describe(state)] as const),
    ...status.plugins.flatMap((plugin) =>
      plugin.kind === 'failed' ? [[`plugin ${plugin.plugin}`, plugin.problem ?? 'failed'] as const] : [],
    ),
  ];
  const width = Math.max(...rows.map(([name]) => name.length));
  const lines = rows.map(([name, value]) => `  ${name.padEnd(width)}  ${value}`);
  return `\n  Parley is running.\n\n${lines.join('\n')}\n\n`;
}

function describe(state: {
  readonly kind: string;
  readonly account?: string;
  readonly reason?: string;
}): string {
  const degraded = state.reason && `, degraded: ${state.reason}`;
  const detail = state.account === undefined ? state.reason : `${state.account}${degraded ?? ''}`;
  return detail === undefined ? state.kind : `${state.kind} (${detail})`;
}
