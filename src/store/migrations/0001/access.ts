import { bigint, integer, type SchemaOf, text, textOrNull } from '../notation.ts';

/** People, links between their accounts, and signed-in browsers. */
export const accessTables = {
  approvals: {
    columns: {
      id: text,
      kind: text,
      subject: text,
      details: text,
      state: text,
      decidedBy: textOrNull,
      createdAt: bigint,
      expiresAt: bigint,
    },
    key: ['id'],
    indexes: {
      approvalsOpen: { on: ['kind', 'subject'], isUnique: true, where: `"state" = 'open'` },
      approvalsDue: { on: ['expiresAt'], where: `"state" = 'open'` },
    },
  },
  people: {
    columns: {
      account: text,
      peerId: text,
      ref: text,
      name: text,
      role: text,
      approvedAt: bigint,
      approvedBy: text,
    },
    key: ['account', 'peerId'],
    indexes: {
      peopleRef: { on: ['ref'] },
      peopleOwners: { on: ['ref'], where: `"role" = 'owner'` },
    },
  },
  pairings: {
    columns: {
      account: text,
      peerId: text,
      id: text,
      ref: text,
      name: text,
      codeHash: textOrNull,
      code: textOrNull,
      kept: textOrNull,
      route: text,
      noticeKey: text,
      offeredTo: textOrNull,
      offeredIn: textOrNull,
      createdAt: bigint,
      expiresAt: bigint,
    },
    key: ['account', 'peerId'],
  },
  pairingTries: {
    columns: { name: text, recent: text },
    key: ['name'],
  },
  leftFiles: {
    columns: { id: text, route: text, files: text, at: bigint },
    key: ['id'],
  },
  links: {
    columns: { peer: text, identity: text, route: text, linkedAt: bigint },
    key: ['peer'],
    indexes: { linksIdentity: { on: ['identity'] } },
  },
  laneAliases: {
    columns: { key: text, laneKey: text, identity: text, peer: text },
    key: ['key'],
    indexes: { laneAliasesIdentity: { on: ['identity'] }, laneAliasesPeer: { on: ['peer'] } },
  },
  linkCodes: {
    columns: {
      peer: text,
      codeHash: text,
      asked: text,
      answerKey: text,
      offeredTo: textOrNull,
      offeredIn: textOrNull,
      offerKey: textOrNull,
      expiresAt: bigint,
    },
    key: ['peer'],
    indexes: { linkCodesHash: { on: ['codeHash'], isUnique: true } },
  },
  linkGuesses: {
    columns: { peer: text, since: bigint, count: integer },
    key: ['peer'],
  },
  signIns: {
    columns: {
      id: text,
      secretHash: text,
      issuer: text,
      browser: text,
      createdAt: bigint,
      lastSeenAt: bigint,
      expiresAt: bigint,
    },
    key: ['id'],
    indexes: { signInsSecret: { on: ['secretHash'], isUnique: true } },
  },
  lockouts: {
    columns: { source: text, until: bigint },
    key: ['source'],
  },
} satisfies SchemaOf<
  | 'approvals'
  | 'people'
  | 'pairings'
  | 'pairingTries'
  | 'leftFiles'
  | 'links'
  | 'laneAliases'
  | 'linkCodes'
  | 'linkGuesses'
  | 'signIns'
  | 'lockouts'
>;
