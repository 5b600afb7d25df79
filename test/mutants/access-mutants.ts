import type { Mutant } from './mutants.ts';

const store = 'test/store/access/access.test.ts';
const alerts = 'test/store/alerts/alerts.test.ts';
const questions = 'test/inbound/questions.test.ts';
const authorise = 'test/inbound/authorise.test.ts';
const onboard = 'test/cli/onboard.test.ts';
const pairCommand = 'test/inbound/pair-command.test.ts';
const signIns = 'test/server/sign-ins.test.ts';

/** Broken variants of access control, and of the code that decides it. */
export const accessMutants: readonly Mutant[] = [
  {
    name: 'the mention before the admission forgotten',
    invariant: 'the message that caused the question about a group is answered once the group is admitted',
    edit: { in: 'admitGroup', find: 'if (kept) {', replace: 'if (kept && kept.id === "") {' },
    test: { file: 'test/inbound/questions.test.ts', name: 'answers the mention that it was asked about' },
  },
  {
    name: 'a deleted mention answered',
    invariant: 'a message that its sender has deleted is not answered once its group is admitted',
    edit: {
      in: 'changeKept',
      find: 'await changeKeptMention(tx, { subject: conversationKey, senderId, messageId }, changed);',
      replace: '',
    },
    test: { file: 'test/inbound/questions.test.ts', name: 'answers the mention that it was asked about' },
  },
  {
    name: 'HEAD spends a sign-in link',
    invariant: 'a sign-in link opens one session, for the browser that opens it',
    edit: { in: 'mountSignIn', find: "if (request.method === 'HEAD') return reply.send();", replace: '' },
    test: { file: signIns, name: 'keeps a sign-in link valid after a HEAD request' },
  },
  {
    name: 'pairing code accepted twice',
    invariant: 'a pairing code lets one person in, once',
    edit: {
      in: 'admitRequest',
      find: `.deleteFrom('pairings')`,
      replace: `.updateTable('pairings').set({ createdAt: tx.now })`,
    },
    also: [{ in: 'closeApproval', find: `.where('state', '=', 'open')`, replace: '' }],
    test: { file: store, name: 'is let in on the account that showed the code, once' },
  },
  {
    name: 'two first owners',
    invariant: 'the first person approved is the owner, and nobody else is',
    edit: {
      in: 'lockDecision',
      find: "if (approval && isApproved && by.role === 'owner-if-none') await lockAttempts(tx);",
      replace: '',
    },
    needsPostgres: true,
    test: { file: store, name: 'on the page is the only owner' },
  },
  {
    name: 'owner sought where they wrote long ago',
    invariant: 'the owner is told where they wrote last',
    edit: {
      in: 'noteOwner',
      find: 'ownerAt === null || Math.abs(tx.now - ownerAt) > stalenessMs',
      replace: 'ownerAt === null',
    },
    test: { file: alerts, name: 'is where they wrote last although they had not written there for long' },
  },
  {
    name: 'the first conversation with an owner is taken for the latest',
    invariant: 'the owner is told where they wrote last',
    edit: { in: 'readOwnerRoute', find: 'Number(ownerAt) + stalenessMs', replace: 'Number(ownerAt)' },
    test: { file: alerts, name: 'is where an owner wrote last, by direct message' },
  },
  {
    name: 'owner told where they count as somebody else',
    invariant: 'what is for the owner is said in a conversation of theirs',
    edit: { in: 'noteOwner', find: "changeRow(tx, 'lanes', key, { ownerAt: null })", replace: 'undefined' },
    test: { file: alerts, name: 'is no conversation in which they count as somebody else' },
  },
  {
    name: 'all questions expire in one step',
    invariant: 'expiry locks what an answer locks, in that order',
    edit: {
      in: 'expireQuestion',
      find: 'const approval = await readApproval(tx, id); if (approval) await expireApproval(tx, approval, effects);',
      replace: `const due = tx.db.selectFrom('approvals').select('id').where('expiresAt', '<=', tx.now);
    for (const one of [{ id }, ...(await due.execute())]) {
      const approval = await readApproval(tx, one.id);
      if (approval) await expireApproval(tx, approval, effects);
    }`,
    },
    needsPostgres: true,
    test: { file: questions, name: 'ends expired questions one by one' },
  },
  {
    name: 'pairing code that never expires',
    invariant: 'a pairing code holds for an hour',
    edit: { in: 'findRequest', find: `.where('expiresAt', '>', tx.now)`, replace: '' },
    test: { file: store, name: 'is shown a new code when the old one has expired' },
  },
  {
    name: 'a fourth request pushes out the first',
    invariant: 'a flood of strangers takes nobody’s place',
    edit: {
      in: 'requestPairing',
      find: `return { kind: 'full', isKept: false };`,
      replace: `await tx.db.deleteFrom('pairings').where('peerId', '=', requests[0]?.peerId ?? '').execute();`,
    },
    test: { file: store, name: 'never waits as the fourth, and pushes nobody out' },
  },
  {
    name: 'a split text that commands',
    invariant: 'a command is a text of its own, never the rest of a pasted one',
    edit: { in: 'readCommand', find: 'isRest ? undefined : ', replace: '' },
    test: { file: 'test/inbound/split-text.test.ts', name: 'is no command' },
  },
  {
    name: 'two presses both decide',
    invariant: 'a question is decided once',
    edit: { in: 'closeApproval', find: `.where('state', '=', 'open')`, replace: '' },
    test: { file: questions, name: 'is decided once although two presses come at once' },
  },
  {
    name: 'anybody’s press decides',
    invariant: 'a question is decided by who has the right to',
    edit: { in: 'decideApproval', find: `if (!by.isOwner) return`, replace: `if (id === '') return` },
    test: { file: questions, name: 'is not decided by anybody else' },
  },
  {
    name: 'what a stranger wrote outlives the code',
    invariant: 'a stranger’s message is kept until their code expires',
    edit: { in: 'dropRequest', find: 'kept: null', replace: '' },
    test: { file: questions, name: 'forgets the stranger’s message when nobody answers in time' },
  },
  {
    name: 'onboarding writes as it goes',
    invariant: 'who leaves onboarding has changed nothing',
    edit: {
      in: 'askAll',
      find: 'const { network, ...ofNetwork }',
      replace: `await write([model], setting.environment, setting.home);
  const { network, ...ofNetwork }`,
    },
    test: { file: 'test/e2e/first-hour-newcomer.test.ts', name: 'changes nothing for a person who leaves' },
  },
  {
    name: 'onboarding tries a vendor’s key at the server in the file',
    invariant: 'a key goes to the vendor it was asked for',
    edit: {
      in: 'askKey',
      find: 'environment.values[addressVariable]',
      replace: 'config.providers[vendor]?.baseUrl',
    },
    test: { file: onboard, name: 'is asked at the vendor, whatever address the file has' },
  },
  {
    name: 'onboarding forgets the model of a vendor',
    invariant: 'the answer to which model answers counts',
    edit: { in: 'askKey', find: 'model: modelAt(vendor, baseUrl, config),', replace: '' },
    test: { file: onboard, name: 'answers from then on: GPT beside a key of Anthropic' },
  },
  {
    name: 'root keeps the data folder of the service',
    invariant: 'the machine’s service can write to its data',
    edit: { in: 'makeFolderFor', find: 'chownSync(made, owner.uid, owner.gid);', replace: '' },
    test: { file: 'test/cli/service.test.ts', name: 'runs as the owner of the data, of a fresh clone' },
  },
  {
    name: 'an owner’s command leaves no trace',
    invariant: 'an owner is asked where they wrote last, be it a command',
    edit: { in: 'applyCommand', find: `spec.chatKind === 'dm'`, replace: `spec.chatKind === 'group'` },
    test: { file: questions, name: 'reaches an owner who has sent nothing but a command' },
  },
  {
    name: 'guesses at pairing codes uncounted',
    invariant: 'ten codes a minute are looked at, whoever tries',
    edit: {
      in: 'takeAttempt',
      find: `if (recent.length >= attemptsPerMinute) return 'limited';`,
      replace: '',
    },
    test: { file: store, name: 'is found by no more than ten attempts a minute' },
  },
  {
    name: 'access decided before the transaction only',
    invariant: 'what is committed after a revocation was decided after it',
    edit: { in: 'acceptBatch', find: 'assertRolesUnchanged(tx, input),', replace: 'undefined,' },
    test: { file: 'test/inbound/access-race.test.ts', name: 'decides again when somebody is revoked' },
  },
  {
    name: 'what waits outlives a revocation',
    invariant: 'a revocation holds for what was taken in before it',
    edit: { in: 'endWorkOf', find: 'await endWaiting(tx, people);', replace: '' },
    test: { file: store, name: 'holds for what the door had decided before it' },
  },
  {
    name: 'sub-agents outlive a revocation',
    invariant: 'a revocation ends what works for the person, run or sub-agent',
    edit: {
      in: 'endWorkOf',
      find: `await stopTree(tx, { sessionId, runIds: [runId], reason: 'stop' }, effects);`,
      replace: 'void runId;',
    },
    test: { file: store, name: 'ends a sub-agent that outlived its run, at work' },
  },
  {
    name: 'announcement outlives a revocation',
    invariant: 'no run begins with the rights of somebody who has none any more',
    edit: { in: 'endWaiting', find: '...waiting, ...announced', replace: '...waiting' },
    test: { file: store, name: 'ends a sub-agent that outlived its run, announced' },
  },
  {
    name: 'title outlives a revocation',
    invariant: 'no model is called for somebody who may no longer write',
    edit: { in: 'endWaiting', find: '...announced, ...titles', replace: '...announced' },
    test: { file: store, name: 'ends the title that waits to be found' },
  },
  {
    name: 'approval for direct messages opens groups',
    invariant: 'an approval for direct messages counts in no group',
    edit: {
      in: 'isOwnerBy',
      find: `(standing === 'owner' && sender.id !== '')`,
      replace: `(standing !== 'none' && sender.id !== '')`,
    },
    test: { file: authorise, name: 'never counts an approval for direct messages in a group' },
  },
  {
    name: 'reactions skip the gate',
    invariant: 'one gate decides about every kind of event',
    edit: {
      in: 'propose',
      find: `if (access.kind === 'refused') {`,
      replace: `if (access.kind === 'refused' && envelope.event.kind === 'message') {`,
    },
    also: [
      {
        in: 'propose',
        find: 'const { authority } = access;',
        replace: `const authority = access.kind === 'allowed' ? access.authority : 'guest';`,
      },
    ],
    test: { file: 'test/threats/access.test.ts', name: 'keeps nothing of anybody else' },
  },
  {
    name: 'orders from whoever’s words',
    invariant: 'only what its sender typed can be a command',
    edit: {
      in: 'readOrder',
      find: "event.kind === 'message' && isTyped(event)",
      replace: "event.kind === 'message'",
    },
    test: { file: 'test/threats/provenance.test.ts', name: 'are executed for nobody on telegram' },
  },
  {
    name: 'confirmed without being asked',
    invariant: 'in chat nobody is let in who was not named to the owner first',
    edit: { in: 'approvePairing', find: 'offeredIn === undefined', replace: "offeredIn !== ''" },
    test: { file: pairCommand, name: 'confirms only what they were asked to confirm' },
  },
  {
    name: '/pair in the hands of everybody',
    invariant: 'only an owner, and only in a direct conversation, approves',
    edit: { in: 'pair', find: "chat === 'dm' && authority === 'owner'", replace: "chat === 'dm'" },
    test: { file: pairCommand, name: 'alone approves' },
  },
  {
    name: 'sign-out kept in memory only',
    invariant: 'who has signed out stays so over a restart',
    edit: {
      in: 'createSignIns',
      find: 'const ended = await store.write(endSignIns, { issuer, ...which });',
      replace: `const ended = 'id' in which ? [which.id] : await store.write(endSignIns, { issuer, ...which });`,
    },
    also: [{ in: 'createSignIns', find: `if ('id' in which) ending.delete(which.id);`, replace: '' }],
    test: { file: signIns, name: 'outlive a restart, and so does a sign-out' },
  },
  {
    name: 'a request outlives the sign-in that it came with',
    invariant: 'who was signed out acts no more, by nothing that they began before',
    edit: { in: 'mountAll', find: 'requests.end(session);', replace: '' },
    test: { file: signIns, name: 'end with the requests that they have under way' },
  },
  {
    name: 'a link outlives the sign-in that asked for it',
    invariant: 'who was signed out comes back by no link of their own',
    edit: { in: 'mountSignIn', find: 'if (!isGood)', replace: 'if (false)' },
    test: { file: signIns, name: 'end with the links that they have asked for' },
  },
  {
    name: 'right token refused while its address is locked',
    invariant: 'wrong tokens never lock out the right one',
    edit: { in: 'createAttemptLimiter', find: `if (isRight()) return { kind: 'right' };`, replace: '' },
    also: [
      {
        in: 'createAttemptLimiter',
        find: 'if (now - attempts.since >= limits.windowMs)',
        replace: `if (isRight()) return { kind: 'right' }; if (now - attempts.since >= limits.windowMs)`,
      },
    ],
    test: {
      file: 'test/server/attempt-limiter.test.ts',
      name: 'finds a lockout that another process has begun',
    },
  },
  {
    name: 'two edits of one version put in place at once',
    invariant: 'of two edits of one version of a file the second is refused',
    edit: {
      in: 'inTurn',
      find: '(replacing.get(path) ?? Promise.resolve()).then(replace)',
      replace: 'replace()',
    },
    test: { file: 'test/plugins/files/file-tools.test.ts', name: 'let one of several replacements' },
  },
  {
    name: 'hard link read',
    invariant: 'a file with a second name is read no more than it is written',
    edit: { in: 'openForReading', find: 'checkOneLink(entry.stats, entry.path);', replace: '' },
    test: {
      file: 'test/plugins/files/workspace-paths.test.ts',
      name: 'neither read nor write a file that has another name',
    },
  },
  {
    name: 'hidden names known to be run, not all others',
    invariant: 'a hidden name is refused unless it is known to be harmless',
    edit: { in: 'isExecuted', find: '!harmless.has(name)', replace: "name === '.git'" },
    test: {
      file: 'test/plugins/files/workspace-paths.test.ts',
      name: 'write to nothing that others run without being asked',
    },
  },
  {
    name: 'repository under another name',
    invariant: 'a folder that git takes for a repository is not written into, whatever its name',
    edit: { in: 'refuseRepository', find: 'throw notWritten(folder.path);', replace: 'return;' },
    test: {
      file: 'test/plugins/files/workspace-paths.test.ts',
      name: 'write into no repository of git',
    },
  },
  {
    name: 'hard link in the prompt',
    invariant: 'a bootstrap file with a second name does not enter the prompt',
    edit: { in: 'readText', find: '|| stats.nlink > 1', replace: '' },
    test: { file: 'test/agent/bootstrap-files.test.ts', name: 'follows no link of either kind' },
  },
  {
    name: 'problem that quotes a secret',
    invariant: 'a problem with the configuration shows no secret',
    edit: {
      in: 'describeIssue',
      find: "/Env$/.test(String(issue.path.at(-1))) ? 'the value' : show(value)",
      replace: 'show(value)',
    },
    test: { file: 'test/config/load-config.test.ts', name: 'never shows a secret it refuses' },
  },
  {
    name: 'page of long messages that cuts its client off',
    invariant: 'every conversation can be opened, however long its messages are',
    edit: {
      in: 'createBoundedSend',
      find: 'if (before > mostWaitingBytes + longest)',
      replace: 'if (before > mostWaitingBytes)',
    },
    test: { file: 'test/server/client-socket.test.ts', name: 'sends a page of long messages whole' },
  },
  {
    name: 'button that doesn’t say that it makes the owner',
    invariant: 'whoever approves the first person is told before that this makes them the owner',
    edit: {
      in: 'createOwnerQuestions',
      find: 'makesOwner ? notices.approveOwnerLabel : notices.approveLabel',
      replace: 'notices.approveLabel',
    },
    test: { file: 'test/inbound/questions.test.ts', name: 'says on the page that the first approval makes' },
  },
  {
    name: 'approval that doesn’t say that it made the owner',
    invariant: 'whoever approved the first person is told after that they are the owner',
    edit: {
      in: 'admitRequest',
      find: "role === 'owner' ? tx.texts.pairingOwnerLetIn : tx.texts.pairingLetIn",
      replace: 'tx.texts.pairingLetIn',
    },
    test: { file: 'test/inbound/questions.test.ts', name: 'says on the page that the first approval makes' },
  },
  {
    name: 'list of requests that keeps quiet about the owner',
    invariant: 'the command line says before the first approval that it makes the owner',
    edit: { in: 'listAccess', find: '...(hasNoOwner ? hint : [])', replace: '' },
    test: { file: 'test/cli/pair.test.ts', name: 'lists who asks, lets the first one in as the owner' },
  },
  {
    name: 'tested address that is forgotten',
    invariant: 'a gateway asks the server whose address onboarding has tested',
    edit: {
      in: 'askKey',
      find: 'providers: { [vendor]: { baseUrl } }',
      replace: 'providers: { [vendor]: { baseUrl: undefined } }',
    },
    test: { file: 'test/cli/onboard.test.ts', name: 'is named with what hides it' },
  },
  {
    name: 'key of one server offered to another',
    invariant: 'onboarding offers a key only to the server that it is set for',
    edit: {
      in: 'askKey',
      find: 'known?.baseUrl === baseUrl ? (known?.apiKeys ?? []) : []',
      replace: 'known?.apiKeys ?? []',
    },
    test: { file: 'test/cli/onboard.test.ts', name: 'never offered to another server' },
  },
  {
    name: 'suggestion of the farthest name',
    invariant: 'the nearest name is suggested for one that is unknown',
    edit: {
      in: 'suggestName',
      find: 'a.distance - b.distance',
      replace: 'b.distance - a.distance',
    },
    test: { file: 'test/config/suggestion.test.ts', name: 'the nearest name' },
  },
  {
    name: 'folder of somebody else that counts as empty',
    invariant: 'a data folder that can’t be read is named as that',
    edit: { in: 'withStore', find: 'assertReadable(dataDir);', replace: '' },
    test: { file: 'test/cli/file-fault.test.ts', name: 'mistake a data folder of another user' },
  },
];
