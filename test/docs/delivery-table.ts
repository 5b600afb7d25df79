/** docs/delivery.md: what happens to messages on each channel, in both directions, and the test that shows it. */

/** One cell: what happens and the test of it, or why it can't happen. */
type Cell =
  | { readonly says: string; readonly file: string; readonly title: string }
  | { readonly never: string };

export type Row = { readonly name: string } & Record<Column, Cell>;
type Column = keyof typeof columns;

/** What may happen to a message, and its heading. */
const columns = {
  crash: 'crash',
  lost: 'lost answer',
  limited: '429',
  edit: 'edit',
  remove: 'delete',
  file: 'file',
} as const;

const shown = (says: string, file: string, title: string): Cell => ({ says, file: `test/${file}`, title });
const never = (why: string): Cell => ({ never: why });

const sending = 'channels/contract/sending-checks.ts';
const interrupted = 'store/delivery/interrupted-send.test.ts';
const noChange: Cell = shown(
  'stays as it is; the agent that asks for it reads `not_supported`',
  'tools/message.test.ts',
  'changes a message, which does not count as having answered: %j',
);
const lostOnce: Cell = shown(
  'the message ends as `unknown` and is not sent again',
  sending,
  'reports a send whose answer was lost as unknown and does not repeat it',
);
const startedOnce: Cell = shown(
  'a send that had begun ends as `unknown`, any other is made after the start',
  interrupted,
  "doesn't send a message again if its holder died while sending it",
);

/** One row for each channel and direction. A new behaviour gets its sentence and its test here. */
export const rows: readonly Row[] = [
  {
    name: 'Telegram in',
    crash: shown(
      'Telegram delivers again what was not stored',
      'channels/telegram/poll.test.ts',
      'moves the offset only after intake has stored the batch',
    ),
    lost: shown(
      'the updates come again and count once',
      'channels/telegram/poll.test.ts',
      'accepts updates that arrive twice, out of order and between invalid ones',
    ),
    limited: shown(
      'polling waits and loses nothing',
      'channels/telegram/poll.test.ts',
      'recovers after %s on the poll',
    ),
    edit: shown(
      'a waiting message is read as edited, a running one corrected, an answered one noted',
      'e2e/telegram-conversation.test.ts',
      'reads a waiting message as edited, and shows a reaction at the next turn',
    ),
    remove: never('Telegram tells bots nothing about deleted messages'),
    file: shown(
      'fetched up to 20 MB, read and shown once, also across a crash',
      'e2e/read-files-killed.test.ts',
      'shows each file once, killed at the point %s',
    ),
  },
  {
    name: 'Telegram out',
    crash: startedOnce,
    lost: lostOnce,
    limited: shown(
      'the answer waits as long as asked, and its reader is told if that is long',
      'e2e/long-waits.test.ts',
      'retries a chat with a rate limit of a day every five minutes, and says so',
    ),
    edit: shown(
      'an interrupted edit is made again, which changes nothing',
      'channels/telegram/outbound.test.ts',
      'repeats any failed edit, deletion or reaction, because a second time changes nothing',
    ),
    remove: shown(
      'an interrupted deletion is made again',
      'channels/telegram/outbound.test.ts',
      'repeats any failed edit, deletion or reaction, because a second time changes nothing',
    ),
    file: shown(
      'one alone or several as an album; an interrupted send ends as `unknown` and is not repeated',
      'e2e/media-out.test.ts',
      'never sends an album twice, killed between its send and the record of it',
    ),
  },
  {
    name: 'Discord in',
    crash: shown(
      'what was written meanwhile is read from the history',
      'e2e/discord-conversation.test.ts',
      'answers messages sent while Parley was down once, in their channels',
    ),
    lost: shown(
      'Discord wants no answer; a gap in the connection is read from the history, once',
      'channels/discord/backfill.test.ts',
      "hands over missed messages once, in order and page by page, without the bot's own",
    ),
    limited: shown(
      'the history is read after the wait',
      'channels/discord/backfill.test.ts',
      'waits for $what and reads the history afterwards',
    ),
    edit: shown(
      'each edit counts once, with its whole text',
      'channels/discord/inbound.test.ts',
      'reads an edit as the whole new text with a separate key for each edit time',
    ),
    remove: shown(
      'a waiting message is cancelled, for a running one a stop is offered',
      'channels/contract/receiving-checks.ts',
      "hands over a deletion with the deleted message's id",
    ),
    file: shown(
      'what can’t be read costs the file, not the words',
      'e2e/read-files.test.ts',
      'answers the words with a file that it can’t read, and says why',
    ),
  },
  {
    name: 'Discord out',
    crash: shown(
      'sent again under its nonce for two minutes; later it is looked up, and never repeated blindly',
      'store/delivery/cut-off-send.test.ts',
      "looks a send up once repeating isn't safe, in this process and the next",
    ),
    lost: shown(
      'sent again under its nonce, so it appears once',
      'channels/discord/sending.test.ts',
      'repeats a send whose answer was lost under its nonce, from another process too, so it appears once',
    ),
    limited: shown(
      'the answer waits in the outbox',
      'channels/discord/sending.test.ts',
      'leaves a send beyond the rate limit to the outbox without a call',
    ),
    edit: shown(
      'an interrupted edit is made again, which changes nothing',
      'channels/discord/outbound.test.ts',
      'repeats an interrupted call whose repetition changes nothing',
    ),
    remove: shown(
      'a message that is gone already counts as deleted',
      'channels/discord/outbound.test.ts',
      'counts a deletion of a message that is gone as sent',
    ),
    file: shown(
      'sent again under its nonce, so it appears once',
      'channels/discord/sending.test.ts',
      'sends a file with its name, repeated under one nonce, so it appears once',
    ),
  },
  {
    name: 'Signal in',
    crash: shown(
      'what its server has handed over is kept on disk until it is stored',
      'e2e/signal-conversation.test.ts',
      'keeps messages in the spool across a kill while the database is away, and answers them in order',
    ),
    lost: shown(
      'its server sends nothing again: a poll without an answer is reported as a gap',
      'channels/signal/receiving.test.ts',
      'reports a poll whose answer is lost as a gap',
    ),
    limited: shown(
      'receiving continues by itself',
      'channels/signal/remote.test.ts',
      'continues receiving after a %i without help',
    ),
    edit: shown(
      'each edit belongs to the message as it was first sent',
      'channels/signal/inbound.test.ts',
      'names an edited message as it was first sent, even after several edits',
    ),
    remove: shown(
      'a waiting message is cancelled, for a running one a stop is offered',
      'channels/contract/receiving-checks.ts',
      "hands over a deletion with the deleted message's id",
    ),
    file: shown(
      'kept on its server until it is stored here',
      'channels/signal/receiving.test.ts',
      'removes files from the server unless they are fetched now or later',
    ),
  },
  {
    name: 'Signal out',
    crash: startedOnce,
    lost: shown(
      'the message ends as `unknown`; an edit, a deletion or a reaction is made again',
      'channels/signal/adapter.test.ts',
      'reports a send without an answer as unknown, and repeats a change',
    ),
    limited: shown(
      'waits until the captcha is solved; without one the message may have arrived and is `unknown`',
      'channels/signal/outbound.test.ts',
      'waits after a challenge until the captcha is solved and reports it',
    ),
    edit: shown(
      'replaces the text, ten times at most',
      'channels/signal/adapter.test.ts',
      'quotes, edits, deletes and reacts',
    ),
    remove: shown(
      'the same deletion may be made again',
      sending,
      'deletes a message that it sent, and accepts the same deletion again',
    ),
    file: shown(
      'sent byte for byte, held in memory in pieces only',
      'channels/signal/adapter.test.ts',
      'sends a file of %i bytes byte for byte, with name and caption',
    ),
  },
  {
    name: 'page in',
    crash: shown(
      'the page keeps what was not stored and sends it again',
      'browser/page.test.ts',
      'keeps a message that Parley could not store and sends it later',
    ),
    lost: shown(
      'the page sends again under the same id, which counts once',
      'client/conversation.test.ts',
      'sends a failed message once more under one id, and each retry under the next',
    ),
    limited: shown(
      'a flood of one sender is refused with one notice',
      'inbound/limits.test.ts',
      'reports a flood once, however long it lasts, and again after a pause',
    ),
    edit: shown(
      'a waiting message can be edited in the list of lanes',
      'e2e/queue-items.test.ts',
      'lists lanes on the page, promotes, edits and cancels their messages, and changes the mode',
    ),
    remove: shown(
      'a waiting message can be cancelled in the list of lanes',
      'e2e/queue-items.test.ts',
      'lists lanes on the page, promotes, edits and cancels their messages, and changes the mode',
    ),
    file: shown(
      'uploaded before its message, within the limit',
      'browser/page.test.ts',
      'sends uploaded files with their message, within the limit',
    ),
  },
  {
    name: 'page out',
    crash: shown(
      'the page reads from the store what it has missed',
      'browser/restart.test.ts',
      'shows nothing of a run that ended while its gateway was down',
    ),
    lost: shown(
      'frames come again and are shown once',
      'client/feed-property.test.ts',
      'applies an event that arrives twice once',
    ),
    limited: never('Parley serves the page itself, so nothing limits it'),
    edit: noChange,
    remove: noChange,
    file: shown(
      'images of four types are shown, everything else is a download',
      'server/file-route.test.ts',
      'serves an image for the page, and any other file only as a download, whatever it contains',
    ),
  },
  {
    name: 'terminal in',
    crash: shown(
      'the terminal keeps the line and sends it again, which counts once',
      'cli/chat-client.test.ts',
      'sends a line once although the store was unavailable and the connection ended',
    ),
    lost: shown(
      'it counts once',
      'cli/chat-client.test.ts',
      'ends even if the acknowledgements of its frames were lost',
    ),
    limited: shown(
      'a flood of one sender is refused with one notice',
      'inbound/limits.test.ts',
      'reports a flood once, however long it lasts, and again after a pause',
    ),
    edit: never('a line that was sent stays as it is; send another one'),
    remove: shown(
      'a waiting message can be cancelled with `parley queue`',
      'e2e/queue-items.test.ts',
      'lists, promotes and cancels waiting messages on the command line',
    ),
    file: shown(
      'not in the chat, but with `parley agent`',
      'e2e/agent-command.test.ts',
      'sends files, and prints the answer as it is written',
    ),
  },
  {
    name: 'terminal out',
    crash: shown(
      'the terminal reconnects and prints each answer once',
      'cli/chat-client.test.ts',
      'ends even if its message ended while it was disconnected',
    ),
    lost: shown(
      'frames come again under their keys and are printed once',
      'channels/client-contract.ts',
      'repeats the outcome of a frame whose acknowledgement was lost',
    ),
    limited: never('the terminal is connected to Parley itself, so nothing limits it'),
    edit: noChange,
    remove: noChange,
    file: shown(
      'name, size and path are printed',
      'cli/chat-client.test.ts',
      'prints the name, the size and the path of a file, and nothing that acts on the terminal',
    ),
  },
  {
    name: 'HTTP in',
    crash: shown(
      'a call that is repeated under its key finds its run',
      'e2e/agent-killed.test.ts',
      'gets the same run for the same key, with one copy of its files',
    ),
    lost: shown(
      'a call that is repeated under its key counts once',
      'e2e/api.test.ts',
      'counts a call once that is repeated under its Idempotency-Key',
    ),
    limited: shown(
      'Parley limits wrong tokens only, never the right one',
      'server/attempt-limiter.test.ts',
      'accepts none of a hundred thousand wrong tokens, but the right one at any time',
    ),
    edit: shown(
      'a waiting item can be edited by its id',
      'operations/lanes.test.ts',
      "changes any waiting item as the owner, and notifies the page's viewers",
    ),
    remove: shown(
      'a run can be cancelled while it waits or runs',
      'service/agent-service.test.ts',
      'cancels a run by its id: while it waits, while it runs, and not after its end',
    ),
    file: shown(
      'in base64, each up to `media.maxMb`',
      'server/agent-calls.test.ts',
      'takes files in base64, up to the size of one',
    ),
  },
  {
    name: 'HTTP out',
    crash: shown(
      'the run continues, and a repeated call gets its answer',
      'e2e/openai-processes.test.ts',
      'continues a conversation, repeats an answer and shows it again after a restart of the gateway',
    ),
    lost: shown(
      'a call with a key gets the same run, wherever its answer was cut',
      'e2e/openai-door.test.ts',
      'starts one run for a call with a key, wherever its answer was cut',
    ),
    limited: never('the program asked, so nothing is sent to it by itself'),
    edit: never('an answer that was given isn’t changed'),
    remove: never('an answer that was given isn’t taken back'),
    file: shown(
      'fetched by the id of its message, by those who may read the conversation',
      'server/file-route.test.ts',
      'serves a file to the owner and to tokens that may read its conversation, and to nobody else',
    ),
  },
];

/** Returns every test that a cell names, once. */
export function testsOf(all: readonly Row[]): readonly { readonly file: string; readonly title: string }[] {
  const named = all.flatMap(cellsOf).flatMap((cell) => ('never' in cell ? [] : [cell]));
  return [...new Map(named.map(({ file, title }) => [`${file} ${title}`, { file, title }])).values()];
}

function cellsOf(row: Row): readonly Cell[] {
  return (Object.keys(columns) as Column[]).map((column) => row[column]);
}

/** Renders the page. */
export function renderDelivery(all: readonly Row[]): string {
  const tests = testsOf(all);
  const written = (cell: Cell) => {
    if ('never' in cell) return `– ${cell.never}`;
    const number = 1 + tests.findIndex(({ file, title }) => file === cell.file && title === cell.title);
    return `${cell.says} [${number}](#tests)`;
  };
  const lines = all.map((row) => `| ${[`**${row.name}**`, ...cellsOf(row).map(written)].join(' | ')} |`);
  const headings = Object.values(columns);
  return `# What becomes of messages

Whether a message survives depends on what its network can be asked. One line for each channel and direction: what happens to a message if
Parley is killed, if the network's answer is lost, if the network asks to wait, if the message is edited or deleted, and to its file. The number
leads to the test that shows it; “–” says why there is nothing to show. Generated from test/docs/delivery-table.ts
(\`npx vitest run test/docs -u\`), which fails when a test is gone.

For example, Ann sends “rent?” on Telegram and Parley is killed while it sends the answer: nobody can say whether it arrived, so it is \`unknown\`,
\`./bin/parley.mjs outbox list\` shows it, and \`outbox retry\` sends it again. On Discord it is sent again at once, and appears once.

| | ${headings.join(' | ')} |
|---|${headings.map(() => '---|').join('')}
${lines.join('\n')}

## Tests

${tests.map(({ file, title }, index) => `${index + 1}. ${title} (\`${file}\`)`).join('\n')}
`;
}
