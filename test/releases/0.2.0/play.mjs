// Plays a bit of everything on release 0.2.0 and leaves its database as a crash would. make-fixture.mjs runs this inside
// that release's own tree, whose helpers it uses.
import { link } from '../../e2e/linking.ts';
import { openStage } from '../../e2e/stage.ts';
import { hasResults, isSubagent, spawns } from '../../e2e/subagent-play.ts';
import { until } from '../../e2e/until.ts';
import { createGate } from '../../platforms/anthropic/gate.ts';
import { lastUserText } from '../../platforms/anthropic/wire.ts';

const config = {
  owners: ['telegram:501'],
  access: { allowFrom: ['telegram:502', 'telegram:504', 'telegram:505'] },
  queue: { dm: { mode: 'followup' } },
  budgets: { gateway: 100 },
};

/**
 * Plays with these further variables of the gateway. `count` resolves with the number of rows of a query; `dump` is
 * called once nothing runs any more.
 */
export async function play({ env, count, dump }) {
  const policies = { PARLEY_DM_POLICY: 'pairing', PARLEY_GROUP_POLICY: 'allowlist' };
  const stage = await openStage(config, [], { ...policies, ...env });
  try {
    await playOn(stage, (sql) => count(sql, stage.dataDir));
    await dump(stage.dataDir);
  } finally {
    await stage.close();
  }
}

async function playOn(stage, count) {
  const { telegram, model } = stage;
  const held = createGate();
  model.script((body) => answerTo(body, held));
  const parley = await stage.start();
  const [owner, web] = [stage.person('telegram', 501), stage.person('web')];
  const user = (id, name) => ({ id, is_bot: false, first_name: name });
  const stored = (sql, rows = 1) => until(async () => (await count(sql)) >= rows, { what: sql });
  const told = async (person, text, pattern) => {
    person.says(text);
    await until(() => person.standing().some((shown) => pattern.test(shown)), {
      what: `${text}: ${pattern}`,
    });
  };

  await told(owner, 'Good morning.', /You said: Good morning\./);
  await told(owner, 'Use a tool.', /You said: Use a tool\./);
  await told(owner, 'Let somebody else do it.', /You said: Let somebody else/);
  await stored(`select 1 from children where state = 'done'`);
  await told(owner, '/compact', /ummar/);
  await told(owner, 'And now?', /You said: And now\?/);
  await told(owner, 'Fail.', /./);
  await stored(`select 1 from "ownerNotices"`);
  await told(owner, '/new', /conversation/);
  await told(web, 'Good morning, page.', /You said: Good morning, page\./);
  await link(web, owner);
  await told(owner, '/budget', /\$/);

  // Two strangers, of whom one is let in, and a group that nobody has allowed yet.
  telegram.people.sends({ from: user(506, 'Friend'), text: 'Hello?' });
  await stored('select 1 from pairings');
  await until(() => telegram.botMessages(501).some(({ message }) => message.reply_markup), {
    what: 'a question',
  });
  telegram.people.pressesButton({ chat: 501, from: user(501, 'Person 501'), label: 'Approve' });
  await stored('select 1 from people');
  telegram.people.sends({ from: user(503, 'Stranger'), text: 'May I?' });
  await stored('select 1 from pairings');
  const group = telegram.world.addSupergroup('team').chat.id;
  const asks = `@${telegram.bot.username} are you there?`;
  telegram.people.sends({ chat: group, from: user(501, 'Person 501'), text: asks });
  await stored(`select 1 from approvals where kind = 'group'`);

  // An answer that is refused, one whose fate nobody knows, and one that has to wait.
  const refused = { code: 400, description: 'Bad Request: message is too odd' };
  telegram.fault({ kind: 'refuse', ...refused }, { method: 'sendMessage', times: 20 });
  stage.person('telegram', 504).says('This answer is refused.');
  await stored(`select 1 from outbox where state = 'failed'`);
  telegram.clearFaults();
  telegram.fault({ kind: 'drop-answer' }, { method: 'sendMessage', times: 1 });
  stage.person('telegram', 505).says('This answer is cut off.');
  await stored(`select 1 from outbox where state = 'unknown'`);

  // A run that waits for somebody, a run at work, and messages behind it.
  stage.person('telegram', 502).says('Ask somebody.');
  await stored('select 1 from runs where "parkedAt" is not null');
  owner.says('Hold this one.');
  await held.reached;
  for (const text of ['Waiting one.', 'Waiting two.']) owner.says(text);
  await stored(`select 1 from inbox where state = 'waiting'`, 2);
  const later = {
    code: 429,
    description: 'Too Many Requests: retry after 600',
    parameters: { retry_after: 600 },
  };
  telegram.fault({ kind: 'refuse', ...later }, { method: 'sendMessage', times: 20 });
  stage.person('telegram', 505).says('This answer has to wait.');
  await stored(`select 1 from outbox where state = 'pending'`);
  await parley.kill();
}

function answerTo(body, held) {
  // The results of tools come in the user's role, without a text.
  const text =
    body.messages
      .map((message) => lastUserText({ messages: [message] }))
      .findLast((said, at) => said !== '' && body.messages[at].role === 'user') ?? '';
  if (isSubagent(body)) return { text: 'Somebody else has done it.' };
  if (text.includes('Fail.'))
    return { status: 401, message: 'invalid x-api-key', errorType: 'authentication_error' };
  if (text.includes('Hold')) return { text: 'Held.', hold: { gate: held } };
  if (hasResultsOfThisTurn(body)) return { text: `You said: ${text}` };
  if (text.includes('Use a tool.')) return { toolCalls: [{ name: 'once' }] };
  if (text.includes('somebody else do it')) return spawns({ task: 'the part', wait: true });
  if (text.includes('Ask somebody.')) return { toolCalls: [{ name: 'ask' }] };
  return { text: `You said: ${text}`, thinking: 'A short thought.' };
}

function hasResultsOfThisTurn(body) {
  const last = body.messages.at(-1);
  return last?.role === 'user' && hasResults({ ...body, messages: [last] });
}
