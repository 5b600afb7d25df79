/** Broken variants of linked accounts, of lanes that several conversations share, and of edits. */
import type { Mutant } from './mutants.ts';

const links = 'test/inbound/link.test.ts';
const shared = 'test/inbound/shared-lane.test.ts';
const changes = 'test/inbound/changes.test.ts';
const moved = 'test/inbound/moved-groups.test.ts';

export const linkMutants: readonly Mutant[] = [
  {
    name: 'an account is separated unheard',
    invariant: 'an account that the operator takes out is told',
    edit: { in: 'removeLink', find: 'effects.deliveries.push(await insertNotice(tx, notice));', replace: '' },
    test: { file: 'test/cli/link.test.ts', name: 'takes out who was linked in chat, who is told' },
  },
  {
    name: 'page reads the lane of the default agent',
    invariant: 'the page shows the lane that its messages enter',
    edit: {
      in: 'localLaneKey',
      find: 'laneAddress(gate, event,',
      replace: 'laneAddress({ ...gate, bindings: [] }, event,',
    },
    test: {
      file: 'test/inbound/local-lane.test.ts',
      name: 'shows its messages with their answers under a binding of its channel',
    },
  },
  {
    name: 'link code used again',
    invariant: 'a link code links once',
    edit: {
      in: 'takeCode',
      find: 'const row = await one.executeTakeFirst();',
      replace: `const row = await tx.db.selectFrom('linkCodes').select(['answerKey', 'offerKey'])
    .where('expiresAt', '>', tx.now)
    .where('peer' in which ? 'peer' : 'codeHash', '=', 'peer' in which ? which.peer : which.codeHash)
    .executeTakeFirst();`,
    },
    test: { file: links, name: 'links accounts, whatever their rights' },
  },
  {
    name: 'link in one step',
    invariant: 'nobody is linked before they were told with whom, and confirmed it',
    edit: { in: 'redeemCode', find: '&& !input.isConfirmed', replace: '&& !input.isConfirmed && isUneven' },
    test: { file: links, name: 'links accounts, whatever their rights' },
  },
  {
    name: 'link codes guessed without end',
    invariant: 'ten codes a minute are looked at, whoever tries',
    edit: { in: 'hasAttemptLeft', find: 'if (together >= forAll.count) return false;', replace: '' },
    test: { file: links, name: 'is looked at ten times a minute by all together' },
  },
  {
    name: 'account that was taken out reads on',
    invariant: 'an account that was taken out does not come back to the lane of the others',
    edit: { in: 'removeAccount', find: 'await (lent', replace: 'await (false' },
    test: { file: links, name: 'shuts out the one whose conversation the others go on in' },
  },
  {
    name: 'account unlinked for ever',
    invariant: 'accounts that were taken apart can be linked again',
    edit: { in: 'isAlone', find: '.length < 2', replace: '.length < 1' },
    test: { file: links, name: 'lets it be linked again' },
  },
  {
    name: 'linked account speaks with the rights of another',
    invariant: 'a turn has the rights of the least trusted account that is linked in chat',
    edit: {
      in: 'newItem',
      find: 'authority: turnAuthority(gate, arrival, authority),',
      replace: 'authority,',
    },
    test: { file: shared, name: 'is what the least trusted of them may' },
  },
  {
    name: 'links not proved again',
    invariant: 'a message that meets a change of links is before it or behind it',
    edit: { in: 'acceptBatch', find: 'input.links && proveLinks(tx, input.links),', replace: 'undefined,' },
    test: {
      file: 'test/inbound/link-steps.test.ts',
      name: 'between the decision on a message and its storing',
    },
  },
  {
    name: 'links proved before the lanes are locked',
    invariant: 'a message that meets a change of links is before it or behind it',
    edit: {
      in: 'acceptBatch',
      find: 'const others =',
      replace: 'if (input.links) await proveLinks(tx, input.links); const others =',
    },
    also: [{ in: 'acceptBatch', find: 'input.links && proveLinks(tx, input.links),', replace: 'undefined,' }],
    test: {
      file: 'test/store/base/lock-order.test.ts',
      name: 'is decided anew when they were linked while it waited for the lane',
    },
    needsPostgres: true,
  },
  {
    name: 'bundle across conversations',
    invariant: 'only parts of one conversation are joined',
    edit: {
      in: 'joinBundle',
      find: '({ name: bundleKey(name, conversationKey), windowMs })',
      replace: '({ name, windowMs })',
    },
    also: [
      {
        in: 'isTogether',
        find: '&& row.bundle === head.bundle && isAlike(head, row)',
        replace: '&& row.bundle === head.bundle',
      },
    ],
    test: { file: shared, name: 'mixes neither routes nor rights under per-channel-peer' },
  },
  {
    name: 'steer from another route',
    invariant: 'a steer joins only a run of its own route',
    edit: {
      in: 'chooseSteers',
      find: `row.authority === run.authority &&
    isSameTarget(row.target, run.target);`,
      replace: 'row.authority === run.authority;',
    },
    test: { file: shared, name: 'mixes neither routes nor rights under main' },
  },
  {
    name: 'every wording of a correction',
    invariant: 'only the newest wording of a correction is read',
    edit: { in: 'correct', find: 'if (unread) {', replace: 'if (unread && false) {' },
    test: { file: changes, name: 'only its newest wording' },
  },
  {
    name: 'deleted message in the summary',
    invariant: 'a message that was taken back is shown to nobody',
    edit: {
      in: 'changeSummary',
      find: 'return line === undefined ? [] : [{ ...summary, line }];',
      replace: 'return line === undefined ? [summary] : [{ ...summary, line }];',
    },
    test: { file: changes, name: 'takes the line away' },
  },
  {
    name: 'settings undone by the second word',
    invariant: 'a group that moved once keeps what was set in it since',
    edit: { in: 'moveConversation', find: 'if (old?.movedTo !== to) {', replace: 'if (old !== undefined) {' },
    test: { file: moved, name: 'keeps its session, its place on the lists' },
  },
  {
    name: 'one bot twice',
    invariant: 'an account that is configured twice is received for once',
    edit: {
      in: 'rejectDuplicateAccount',
      find: 'if (other === undefined || other === line) return;',
      replace: "if (other !== '') return;",
    },
    test: { file: 'test/channel-host/accounts.test.ts', name: 'configured twice (pitfall 54)' },
  },
];
