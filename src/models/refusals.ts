/**
 * Why model servers refuse requests: one table for both APIs, most specific first, and the first line that fits decides.
 * Codes are compared whole; wordings are searched in what the server said, in lower case. Statuses decide only what
 * neither a code nor a wording does, because servers use them freely.
 */
import type { RefusalClass } from '#contracts/model.ts';
import type { Refusal } from './read-refusal.ts';

type Line = {
  readonly is: RefusalClass;
  readonly codes?: readonly string[];
  readonly words?: RegExp;
  /** The line counts only with one of these statuses. */
  readonly status?: readonly (number | undefined)[];
};

/** Classes about which the owner is alarmed. No words of a person may lead to one. */
const alarming: ReadonlySet<RefusalClass> = new Set([
  'key',
  'credit',
  'allowance',
  'forbidden',
  'no-model',
  'address',
]);

const lines: readonly Line[] = [
  // --- codes ---
  {
    is: 'slip',
    codes: ['tool_use_failed', 'json_validate_failed', 'output_parse_failed', 'malformed_function_call'],
    words:
      /failed to call a function|tool call validation failed|failed to parse (?:tool|function) call|(?:error|failed) parsing tool call|tool calls? could not be parsed|failed to parse input at pos|model (?:produced|generated|returned) (?:an )?invalid (?:json|tool call)|invalid tool calls? (?:was |were )?generated/,
  },
  // Closed accounts; "for violating our policies" says why.
  {
    is: 'credit',
    codes: [
      'account_deactivated',
      'organization_on_hold',
      'account_suspended',
      'account_disabled',
      'organization_disabled',
      '1110',
      '1111',
      '1112',
      '1121',
    ],
    words:
      /(?:account|organi[sz]ation|project|workspace|team)\b.{0,60}\b(?:has been|was|is|been) (?:currently )?(?:deactivated|disabled|suspended|terminated|blocked|locked|banned|on hold|inactive|frozen)|账[户号].{0,10}(?:锁定|冻结|停用|封禁|异常)/,
  },
  {
    is: 'policy',
    codes: [
      'content_policy_violation',
      'content_filter',
      'content_policy',
      'content_filtered',
      'content_filter_policy_violation',
      'responsibleaipolicyviolation',
      'data_inspection_failed',
      'datainspectionfailed',
      'flagged_input',
      'sensitive_check_error',
      'sensitive_words_detected',
      'invalid_messages_sensitive',
      'content_moderation',
      'moderation_blocked',
      'safety_violation',
      'prohibited_content',
      'usage_policy',
      'cyber_policy_violation',
      'invalid_prompt',
      'image_content_policy_violation',
      'prompt_blocked',
      'guardrail_intervened',
      'guardrailintervened',
      'content_violation',
      'risk_control',
      'safety_check_type_bio',
      'minimax:1026',
      'minimax:1027',
      '1301',
    ],
  },
  {
    is: 'credit',
    codes: [
      'insufficient_quota',
      'billing_hard_limit_reached',
      'billing_soft_limit_reached',
      'billing_not_active',
      'billing_error',
      'insufficient_balance',
      'insufficient_credits',
      'insufficient_funds',
      'insufficient_user_quota',
      'pre_consume_token_quota_failed',
      'exceeded_current_quota_error',
      'credit_balance_too_low',
      'payment_required',
      'arrearage',
      'balance_depleted',
      'accountoverdueerror',
      'quota_exhausted',
      'contract_spend_limit_reached',
      'enforced_spend_limit_reached',
      'linked_organization_spend_limit_reached',
      'linked_organization_billing_unavailable',
      'postpaidbilloverdue',
      'prepaidbilloverdue',
      'commodity_not_purchased',
      'minimax:1008',
      '1113',
    ],
  },
  {
    is: 'key',
    codes: [
      'invalid_api_key',
      'authentication_error',
      'invalid_authentication_error',
      'incorrect_api_key_error',
      'api_key_invalid',
      'api_key_expired',
      'expired_api_key',
      'invalid_token',
      'token_expired',
      'invalid_access_token',
      'invalidapikey',
      'invalid_authentication',
      'authenticationerror',
      'unauthenticated',
      'wrong_api_key',
      'missing_api_key',
      'api_key_service_blocked',
      'unrecognizedclientexception',
      'expiredtokenexception',
      'invalidsignatureexception',
      'minimax:1004',
      'minimax:2049',
      '1000',
      '1001',
      '1002',
      '1003',
      '1004',
    ],
  },
  {
    is: 'allowance',
    codes: ['1308', '1309', '1310', 'usage_limit_reached', 'usage_limit_exceeded', 'spend_limit_exceeded'],
  },
  {
    is: 'overflow',
    codes: [
      'context_length_exceeded',
      'context_window_exceeded',
      'model_context_window_exceeded',
      'contextwindowexceedederror',
      'exceed_context_size_error',
      'model_max_prompt_tokens_exceeded',
      'request_too_large',
      'prompt_too_long',
      'tokens_too_long',
      'tokens_limit_reached',
      'max_prompt_tokens_exceeded',
      'input_too_long',
      'minimax:1039',
      '1261',
    ],
  },
  {
    is: 'rate',
    codes: [
      'throttlingexception',
      'limit_burst_rate',
      'limit_requests',
      'throttling',
      'throttling.ratequota',
      'throttling.allocationquota',
      'throttling.burstrate',
      'rpm_rate_limit_exceeded',
      'tpm_rate_limit_exceeded',
      'minimax:1002',
      '1302',
      '1303',
      '1304',
      '1305',
    ],
  },
  {
    is: 'passing',
    codes: [
      'overloaded_error',
      'engine_overloaded_error',
      'engine_overloaded',
      'server_overloaded',
      'serviceunavailableexception',
      'modelnotreadyexception',
      'modeltimeoutexception',
      'timeout_error',
      'over_capacity',
      'capacity_exceeded',
      'model_overloaded',
      'model_loading',
      'queue_exceeded',
      '1234',
    ],
  },
  {
    is: 'no-model',
    codes: [
      'model_not_found',
      'model_not_available',
      'model_decommissioned',
      'model_deprecated',
      'model_not_supported',
      'modelnotfound',
      'deploymentnotfound',
      'model_is_deactivated',
      'invalid_model',
      'unknown_model',
      '1211',
    ],
  },
  // --- wordings ---
  // A longer window that costs extra: what fits into the usual one is accepted.
  {
    is: 'overflow',
    words: /extra usage is required for long context|long context beta is not yet available/,
  },
  // A single request above a minute's entire allowance, so waiting doesn't help.
  { is: 'overflow', words: /request too large/, status: [413, 429] },
  { is: 'credit', words: /specified api usage limits|regain access/ },
  {
    is: 'allowance',
    words:
      /(?:daily|weekly|monthly|hourly|session|5[ -]hours?|5 小时)[a-z/ ]{0,30}(?:limit|quota|cap)s?\b.{0,20}(?:exhausted|reached|exceeded|hit|used)|usage limits?.{0,30}(?:reached|exceeded|hit)|(?:reached|exceeded|hit) your .{0,40}usage limits?|limit exhausted|free-models-per-(?:day|month)|(?:tokens|requests) per day|\((?:tpd|rpd)\)|\btpd rate|perday|使用上限|key limit exceeded|spend(?:ing)? (?:limit|cap)/,
  },
  {
    is: 'rate',
    codes: [
      'resource_exhausted',
      'rate_limit_error',
      'rate_limit_exceeded',
      'rate_limit',
      'ratelimitreached',
      'ratelimitexceeded',
      'too_many_requests',
      'toomanyrequests',
      'rate_limited',
    ],
  },
  {
    is: 'credit',
    words:
      /insufficient[ _](?:account )?(?:balance|credits?|funds|quota|usd)|credit balance|not enough credits?|(?:requires?|need) (?:at least .{0,20})?more credits|(?:out of|no usable|used up .{0,20}|exhausted .{0,20}|depleted .{0,20}|add|add more|purchase|buy|top[ -]?up .{0,20})\b(?:credits?|funds|balance)\b|credits? (?:have been |has been |are |is )?(?:exhausted|depleted|used up)|payment (?:required|method|is past due)|past due|in arrears|overdue|exceeded your current quota|prompt tokens limit exceeded|billing (?:hard limit|details|is not|not active|account)|please recharge|account is not active|token quota is not enough|have not purchased|account is in good standing|余额|欠费|充值|额度.{0,4}(?:不足|用尽|用完|失败)|预扣费|недостаточно средств|残高不足|잔액/,
  },
  {
    is: 'key',
    words:
      /(?:invalid|incorrect|wrong|missing|unknown|malformed|expired|revoked|disabled|unauthori[sz]ed|no|bad) (?:api[ _-]?key|x-api-key|auth(?:entication|orization)? (?:token|credentials?|header|key)|authentication|credentials?|access token|bearer token|subscription key)|api[ _-]?key.{0,30}(?:not valid|not found|invalid|expired|was reported|revoked|disabled|deactivated|is missing|is required|is incorrect|has been)|\b(?:token|key) (?:has |is |was )?(?:expired|revoked|disabled|invalid)|could not (?:authenticate|validate.{0,20}credentials)|authenticat(?:ion|e) (?:fails|failed|failure|required)|invalid[_ ]token\b|no (?:cookie )?auth credentials|无效的(?:令牌|api|key)|令牌.{0,10}(?:不可用|过期|无效)|身份验证|api ?key.{0,6}(?:错误|无效|不正确)|鉴权失败/,
    status: [400, 401, 403, 404, 500, 200, undefined],
  },
  {
    is: 'rate',
    words:
      /rate[ _-]?limit|ratelimiterror|too many (?:concurrent )?requests|requests? (?:rate|per (?:minute|second|hour))|tokens per min|\b(?:tpm|rpm)\b|throttl|concurren(?:cy|t)\b.{0,40}(?:limit|exceed|high|usage|reached)|high concurrency|resource (?:has been )?exhausted|quota exceeded|too many tokens,? please wait|请求(?:过于|太)?频繁|频率|限流|并发|速率|レート制限|요청이 너무|слишком много запросов/,
  },
  {
    is: 'content',
    codes: [
      'invalid_image',
      'invalid_image_format',
      'image_parse_error',
      'invalid_base64_image',
      'image_too_large',
    ],
    words:
      /^messages[.[]\d|could not process image|image\b.{0,60}(?:exceeds|too large|dimensions exceed|is invalid|not a valid|cannot be (?:decoded|processed|identified)|corrupt)|(?:invalid|unsupported|corrupt\w*|broken) (?:base64 )?image|(?:failed|unable|error) (?:to )?(?:load|decode|process|download)\w* (?:the )?image|tool_use\b.{0,40}without|tool_call_ids? (?:did not have|not found)|must be followed by tool messages|preceding message with .?tool_calls|unexpected .?tool_use_id|invalid .?signature.? in .?thinking|cannot be modified|request body is not valid json|roles? must alternate/,
    status: [400, 422],
  },
  {
    is: 'overflow',
    words:
      /exceed context limit|contextwindowexceeded|max_tokens must be at least 1, got -|tokens \+ .{0,3}max_new_tokens|must have less than \d+ tokens|(?:maximum|max) (?:context|prompt|input|sequence|model|total)[ -]?(?:token )?(?:length|window|size|limit|len)|context[ _-]?(?:length|window|size|limit|budget)s?(?:\b|_).{0,60}(?:exceed|overflow|too (?:long|large|small)|limit|full|reached|ran out|not enough|insufficient|only|of \d|is \d)|exceed\w* (?:\S+ ){0,4}(?:context|max_model_len)|greater than the context|longer than the (?:model|context|maximum)|longer than .{0,20}context|context the overflows|n_keep|n_ctx|上下文|コンテキスト|컨텍스트|контекст/,
    status: [400, 413, 422, 424, 431, 500, 502, 503, 200, undefined],
  },
  {
    is: 'answer-limit',
    words:
      /max_(?:completion_|output_|new_)?tokens[^.]{0,80}(?:too large|too high|must be (?:less|at most|between|<=|in)|exceeds?\b|at most|supported range|valid range|greater than|above|maximum allowed|larger than|out of range|> ?\d|should be)|range of max_tokens|max(?:imum)? tokens (?:you )?requested exceeds? the model limit|supports at most \d+ (?:completion|output) tokens|maxoutputtokens|max tokens must be less|maximum (?:allowed )?number of output tokens|max_tokens.{0,20}(?:非法|超出|过大)/,
    status: [400, 422, 500, 200, undefined],
  },
  {
    is: 'overflow',
    words:
      /exceed\w* (?:\S+ ){0,4}(?:token limit|length limit|number of (?:input )?tokens|input (?:length|token)|max(?:imum)? length)|\b(?:prompt|input|request|message|conversation|text|query|payload|content)s?\b[^.]{0,60}(?:too long|too large|too big|exceeds? (?:the )?(?:max|limit)|over the token)|too many (?:input )?tokens|tokens? (?:limit|count)\b.{0,40}exceed|tokens in request more than|tokens? exceed|(?:reduce|shorten|truncate) (?:the |your )?(?:length|input|prompt|messages|conversation)|exceeds the limit of \d|(?:input|prompt) tokens?\b.{0,40}(?:exceed|greater|more than|larger)|current length is|range of input length|ran out of room|string too long|超过.{0,8}(?:最大|长度|限制)|超出.{0,10}(?:长度|限制|最大)|(?:输入|内容|文本|提示).{0,6}(?:过长|太长)|最大トークン/,
    status: [400, 413, 422, 424, 431, 500, 502, 503, 200, undefined],
  },
  {
    is: 'forbidden',
    codes: ['unsupported_country_region_territory', 'model_not_supported_on_free_tier', '1220'],
    words:
      /(?:country|region|territory|location)\b.{0,40}not (?:supported|available)|guardrail restrictions and data policy|matching your data policy|must be verified to use|plan does not include|not available on the free tier|active grok subscription/,
  },
  {
    is: 'policy',
    words:
      /contentpolicyviolation|content[ _-]?(?:policy|policies|filter|moderation|management policy|safety)|(?:usage|acceptable use|safety|community|prohibited use) (?:policy|policies|guidelines)|(?:violat|breach)\w* .{0,40}(?:policy|policies|terms of|guidelines)|\b(?:was|were|been|is|has) (?:flagged|filtered|blocked by .{0,20}(?:safety|content|moderation|guardrail|filter))|flagged (?:for|as|by)|inappropriate|new_sensitive|sensitive (?:content|words?|information|data|chat)|high risk|safety (?:system|reasons|filter|settings|checks?)|moderation|harmful|prohibited content|unsafe|guardrail|risk control|security configurations|敏感|违规|不当内容|不安全|违反|内容审核|安全策略|有害|不適切|부적절|недопустим/,
    status: [400, 403, 406, 422, 451, 200, undefined],
  },
  {
    is: 'address',
    words:
      /unexpected endpoint|404 page not found|cannot (?:post|get) \/|invalid url \(|no route|unknown (?:endpoint|path|url|route)|method not allowed|url not found|the requested url|no static resource|^(?:404 )?not found$/,
    status: [400, 404, 405, 501, 200],
  },
  {
    is: 'no-model',
    codes: ['not_found_error'],
    words:
      /model\b.{0,120}(?:not found|does not exist|doesn't exist|not exist|is not available|not supported|has been (?:decommissioned|deprecated|removed|retired)|deactivated|is not a valid|no longer|not loaded|unloaded)|no (?:such|available) (?:model|channel)|(?:unknown|invalid|unsupported|unrecognized) model|no endpoints found|not a valid model|no models? loaded|try pulling it|has no deployments?|no healthy deployments|模型.{0,40}不存在|不存在的模型|无可用渠道/,
    status: [400, 403, 404, 410, 422, 500, 503, 200, undefined],
  },
  {
    is: 'forbidden',
    codes: [
      'permission_error',
      'permission_denied',
      'permissiondenied',
      'accessdenied',
      'access_denied',
      'accessdenied.unpurchased',
      'accessdeniedexception',
      'model_access_denied',
    ],
    words:
      /(?:do(?:es)? not|don't|doesn't|not) have (?:access|permission)|not (?:authori[sz]ed|permitted|entitled|allowed) to (?:access|use|sample|invoke|perform|call)|permission[ _]denied|insufficient permissions?|access (?:was |is )?denied|no permission|权限|无权|нет доступа|アクセス権|권한/,
    status: [400, 401, 403, 404],
  },
  {
    is: 'passing',
    words:
      /overloaded|at (?:full )?capacity|over capacity|capacity exceeded|high demand|(?:server|service|engine|system|model)s? (?:is |are )?(?:too |currently |temporarily )*(?:busy|unavailable|overload)|temporarily (?:unavailable|unable)|model is (?:still |currently )?loading|loading model|not ready|timed out|deadline exceeded|please retry|retry your request|繁忙|稍后再试|稍后重试|负载已饱和/,
    status: [400, 403, 404, 422, 499, 200, undefined],
  },
];

/**
 * Returns what the refusal means. `request`: everything that the request said, in lower case; what merely repeats it
 * never alarms the owner.
 */
export function classOf(refusal: Refusal, request: () => string): RefusalClass {
  const { status, words, isPage } = refusal;
  // A proxy's page says nothing about the call but its status.
  if (isPage) return classOfStatus(refusal);
  for (const line of lines) {
    if (line.status !== undefined && !line.status.includes(status)) continue;
    if (line.codes && refusal.codes.some((code) => line.codes?.includes(code))) return line.is;
    const evidence = [
      ...refusal.quotedCodes
        .filter((code) => line.codes?.includes(code))
        .map((code) => code.replace('minimax:', '')),
      ...(line.words?.exec(words)?.slice(0, 1) ?? []),
    ];
    if (evidence.length === 0) continue;
    if (!alarming.has(line.is) || evidence.some((each) => !request().includes(each))) return line.is;
  }
  return classOfStatus(refusal);
}

/** Servers' faults, and those that proxies in front of them report. */
const passing: ReadonlySet<number> = new Set([408, 409, 424, 425, 498, 499]);

/** Titles of proxies' pages about a server that is away for now, sent with a status that says otherwise. */
const passingPage = /\b5(?:0[0234]|2[0-4])\b|bad gateway|gateway time-?out|unavailable/;

function classOfStatus({ status, codes, words, isPage, isAnswer }: Refusal): RefusalClass {
  if (status === undefined || status < 300) {
    // A server that breaks a stream off with an error is itself to blame unless it says otherwise.
    if (isPage) return passingPage.test(words) ? 'passing' : 'address';
    return isAnswer || codes.includes('invalid_request_error') ? 'unknown' : 'passing';
  }
  if (status < 400 || status === 405) return 'address';
  if (status === 401) return 'key';
  if (status === 402) return 'credit';
  if (status === 404) return 'address';
  if (status === 413) return 'overflow';
  if (status === 429) return 'rate';
  return status >= 500 || passing.has(status) ? 'passing' : 'unknown';
}
