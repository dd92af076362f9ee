"""Responses to IFEval's instructions, for `ifeval_reference.py`: good ones, bad ones, and ones that no model would write.

    python ifeval_cases.py responses     # responses to each kind of instruction
    python ifeval_cases.py texts         # texts for sentences, words and languages
"""

import json
import sys
import unicodedata
from pathlib import Path

TEXTS = json.loads((Path(__file__).parent / "ifeval_texts.json").read_text("utf-8"))
ENGLISH = TEXTS["en"]

# Each kind of instruction gets these responses with its first kwargs.
UNUSUAL = [
    "",
    " \n\t\u00a0\u3000",
    "\x1c\x85",
    "\ufeff",
    ENGLISH,
    ENGLISH.upper(),
    ENGLISH.lower(),
    ENGLISH.replace(". ", ".\r\n"),
    "```python\nprint('hello, world')  # [x] *y*\n```",
    "123 456.78 9,000",
    "***",
    "******",
    "\n\n\n",
    "😀 👍🏽 ❤️",
]


def with_chat_phrases(response):
    """Yields a response alone and with phrases that chat models add. Only the loose check ignores the first and last line."""
    yield response
    yield f"Sure, here is my answer:\n{response}"
    yield f"{response}\nI hope that this helps, have a good day!"
    yield f"Sure, here it is:\n\n{response}\n\nLet me know what you think, please."
    yield f"**{response}**"


AT_LEAST, LESS = "at least", "less than"

RESPONSES = {
    "keywords:existence": [
        ({"keywords": ["river", "boat"]}, ["The river carried our boat."]),
        ({"keywords": ["river", "boat"]}, ["RIVERS, lifeboats", "ri*ver* boat", "river bo\nat", "ríver boat"]),
        ({"keywords": ["stra\u00dfe"]}, ["STRA\u1e9eE", "STRASSE", "Hauptstraße"]),
        ({"keywords": ["kiwi"]}, ["K\u0130W\u0131", "\u212a\u0131wi", "KIWI", "kivi"]),
        ({"keywords": ["\u03c3\u03bf\u03c6\u03cc\u03c2"]}, ["ΣΟΦΌΣ", "σοφόσ"]),
    ],
    "keywords:frequency": [
        ({"keyword": "run", "frequency": 3, "relation": AT_LEAST}, ["Run, run, run!", "Running runners outrun.", "run run"]),
        ({"keyword": "run", "frequency": 2, "relation": LESS}, ["Run!", "I ran.", "run r*u*n", "RUN\nrun"]),
        ({"keyword": "aa", "frequency": 2, "relation": AT_LEAST}, ["aaaa", "aaa", "AaAa a"]),
        ({"keyword": " ice ", "frequency": 1, "relation": AT_LEAST}, ["nice", "\u0130CE", "ıce", "ise"]),
    ],
    "keywords:forbidden_words": [
        ({"forbidden_words": ["cat", "dog"]}, ["Cats and dogma.", "A bird.", "The cat.", "CAT", "hot-dog", "dog_house"]),
        ({"forbidden_words": ["cat", "dog"]}, ["the cat sat\na bird sang", "ca*t", "cat's", "catécat", "écat", "cat\u0301"]),
        ({"forbidden_words": ["\u00e9t\u00e9"]}, ["un été chaud", "UN ÉTÉ", "étés", "e\u0301te\u0301"]),
        ({"forbidden_words": ["\u0915\u0932"]}, ["मैं कल आया", "कला", "आज"]),
    ],
    "keywords:letter_frequency": [
        ({"letter": "e", "let_frequency": 4, "let_relation": AT_LEAST}, ["Every evening", "Elle", "ééé e", "e*e*e*e"]),
        ({"letter": "E", "let_frequency": 2, "let_relation": LESS}, ["one", "none here", "E", "\u0415 is Cyrillic", "no"]),
        ({"letter": "i", "let_frequency": 2, "let_relation": AT_LEAST}, ["\u0130\u0130", "\u0131\u0131", "II", "Iı"]),
        ({"letter": "k", "let_frequency": 1, "let_relation": AT_LEAST}, ["\u212a", "q", "K"]),
        ({"letter": "s", "let_frequency": 3, "let_relation": LESS}, ["Sassy\nsss", "stress", "Swiss\nok"]),
    ],
    "language:response_language": [
        ({"language": language}, [TEXTS[language], f"{ENGLISH}\n{TEXTS[language]}", TEXTS[language].split(" ")[0]])
        for language in ("de", "kn", "pa", "mr", "fa", "vi", "ko", "sw", "ru", "hi", "bg", "pt", "gu", "te", "it", "ar")
    ] + [
        ({"language": language}, [TEXTS[language], TEXTS["de"]]) for language in ("ta", "fi", "ur", "th", "ne", "bn", "pl")
    ],
    "length_constraints:number_sentences": [
        ({"num_sentences": 3, "relation": AT_LEAST}, ["One. Two. Three.", "One! Two? Three", "1. One\n2. Two\n3. Three"]),
        ({"num_sentences": 3, "relation": AT_LEAST}, ["A line\nanother line\na third", "Well... yes. No", "Hi.There.You."]),
        ({"num_sentences": 3, "relation": LESS}, ["Dr. Smith met Mrs. Jones at 5 p.m. on Jan. 3.", "It costs $3.50. Or 4.99."]),
        ({"num_sentences": 3, "relation": LESS}, ['"Go." "No." "Yes."', "(One.) (Two.) Three.", "Really?! Yes!! No.", "e.g. this, etc. and so on"]),
        ({"num_sentences": 2, "relation": LESS}, ["J. R. Smith wrote it.", "Plan B. Make a list.", "The U.S. is big.", "See fig. 3. It helps."]),
        ({"num_sentences": 4, "relation": AT_LEAST}, [TEXTS["hi"], TEXTS["zh-cn"], "* One.\n* Two.\n* Three.\n* Four.", "“A.” ‘B.’ «C.» D."]),
    ],
    "length_constraints:number_paragraphs": [
        ({"num_paragraphs": 2}, ["One\n***\nTwo", "One *** Two", "***\nOne\n***\nTwo\n***", "One\n\n***\n\nTwo"]),
        ({"num_paragraphs": 2}, ["One****Two", "One\n* * *\nTwo", "One\n***\n***\nTwo", "One\n***\n \n***\nTwo", "One******Two"]),
        ({"num_paragraphs": 1}, ["One", "One\n\nTwo", "***One***", "One\n***", "One\x85***\x85"]),
        ({"num_paragraphs": 3}, ["Here:\n***\nA\n***\nB\n***\nC", "A\r\n***\r\nB\r\n***\r\nC", "A***B***C", "A\n***\nB"]),
    ],
    "length_constraints:number_words": [
        ({"num_words": 5, "relation": AT_LEAST}, ["one two three four five", "don't can't it's", "a-b-c-d-e", "1.5 2.5 3", "a_b c d e"]),
        ({"num_words": 5, "relation": LESS}, ["four words are here", "one\ntwo three four five", "½ ² Ⅷ x y", "x\u0301y z\u200db a b c"]),
        ({"num_words": 12, "relation": LESS}, [TEXTS["hi"].split("।")[0], TEXTS["th"], TEXTS["ja"], "नमस्ते दुनिया", "https://a.b/c?d=e&f=g"]),
        ({"num_words": 3, "relation": AT_LEAST}, ["* a * b", "... !!!", "one\u00a0two\u2003three", "а б в"]),
    ],
    "length_constraints:nth_paragraph_first_word": [
        ({"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "then"}, ["First.\n\nThen we go.", "First.\n\n'\"Then\" we go.", "A\n\n\n\nThen"]),
        ({"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "then"}, ["A\n\n\"'Then b", "A\n\nthen, b", "A\n\nthenceforth", "A\n\n  THEN!", "A\r\n\r\nThen"]),
        ({"num_paragraphs": 1, "nth_paragraph": 1, "first_word": "Elm"}, ["Elm trees", "elm's", "*Elm* trees", "Elm-trees", "Elm\x1ctrees", "...elm"]),
        ({"num_paragraphs": 1, "nth_paragraph": 1, "first_word": "\u03a3\u039f\u03a6\u039f\u03a3"}, ["ΣΟΦΟΣ είναι", "σοφος", "σοφοσ"]),
        ({"num_paragraphs": 3, "nth_paragraph": 3, "first_word": "it"}, ["A\n\nB\n\nIt is.", "A\n\nB\n\nIt is.\n\nD", "A\n\n \n\nIt\n\nB", "Hi:\n\nA\n\nB\n\nIt"]),
    ],
    "detectable_content:number_placeholders": [
        ({"num_placeholders": 2}, ["Dear [name], at [place].", "[[a]]", "[a] [", "[] []", "[a\nb] [c]", "[a[b]c] d]", "\\[a\\] [b]"]),
        ({"num_placeholders": 1}, ["[ ]", "(name)", "［name］", "a [link](url)", "[a", "[a\u2028b]", "[a\rb]", "x[1]"]),
        ({"num_placeholders": 3}, ["Hi:\n[a] [b]\n[c]", "[a][b][c]", "*[a]* [b] **[c]**"]),
    ],
    "detectable_content:postscript": [
        ({"postscript_marker": "P.S."}, ["Yes.\nP.S. Call me.", "p. s. hi", "P.P.S. no", "PS: no", "P.S", "stop.sign p.s.", "p.\ns."]),
        ({"postscript_marker": "P.P.S"}, ["P.P.S hi", "p.p. s", "P. P. S.", "P.S. hi", "PPS", "P.P.\nS", "P.  P.S"]),
        ({"postscript_marker": "Note:"}, ["note: ok", "NOTE : no", "a note:", "not*e:", "No\u00adte:"]),
        ({"postscript_marker": "P.S."}, ["P.S.\nbye", "P*.S.*", "P.\u00a0S.", "P.\tS. x"]),
    ],
    "detectable_format:number_bullet_lists": [
        ({"num_bullets": 2}, ["* one\n* two", "- one\n- two", "* one\n- two", "*one\n*two", "** bold **\n* one\n* two", "  * one\n\t* two"]),
        ({"num_bullets": 2}, ["+ one\n+ two", "• one\n• two", "*\n* one\n* two", "* one * two", "a - b\n- c\n- d", "---\n- one", "-\n-"]),
        ({"num_bullets": 1}, ["\n\n* one", "*", "-", "* one\r* two", "* one\r\ntext", "\u2028* one", "x\x0b* one", "* *", "*\n\nx"]),
        ({"num_bullets": 3}, ["Here:\n* a\n* b\n* c", "- a\n- b\n- c\n- d", "* a\n* b\n\n* c\n", "-a\n--b\n---c"]),
    ],
    "detectable_format:constrained_response": [
        ({}, ["My answer is yes.", "My answer is no.", "My answer is maybe.", "my answer is yes.", "My answer is yes", "My answer is Yes."]),
        ({}, ["I thought. My answer is no. Really.", "My answer\nis no.", "My *answer* is no.", "MY ANSWER IS NO.", "My answer is\u00a0no.", "Maybe."]),
    ],
    "detectable_format:number_highlighted_sections": [
        ({"num_highlights": 2}, ["*one* and *two*", "**one** is two", "*a* **b**", "* one * two *", "**** **", "***x***", "*one\ntwo*"]),
        ({"num_highlights": 1}, ["_one_", "* bullet", "* a\n* b", "**", "* *", "*\u00a0*", "2*3*4", "\\*a\\*", "*a*b*c*"]),
        ({"num_highlights": 3}, ["*a* *b*\n*c*", "**a** *b*", "*a **b** c*", "***a*** **b**", "**a****b**"]),
    ],
    "detectable_format:multiple_sections": [
        ({"section_spliter": "Section", "num_sections": 2}, ["Section 1\nA\nSection 2\nB", "Section1Section2", "section 1 section 2", "Section 1"]),
        ({"section_spliter": "SECTION", "num_sections": 2}, ["SECTION 1: a SECTION 2: b", "SECTION A SECTION B", "SECTION  1 SECTION 2", "SECTION\n1\nSECTION\n2"]),
        ({"section_spliter": " Day ", "num_sections": 1}, ["Monday 1", "Day ١", "Day ²", "Day one", "**Day** 1", "Day\u00a01", "Day\x1c1", "Day-1"]),
        ({"section_spliter": "Section", "num_sections": 3}, ["Section 1 Section 2 Section 3", "Section 1, 2, 3", "Section *1*\nSection 2\nSection 3", "# Section 1\n## Section 1.1\n# Section 2"]),
    ],
    "detectable_format:json_format": [
        ({}, ['{"a": [1, 2.5e3, null, true, "x"]}', '```json\n{"a": 1}\n```', "```\n[]\n```", "```JSON\n3```", '"text"', "{'a': 1}"]),
        ({}, ['{"a": 1,}', '{"a": 1} // c', "NaN", '[Infinity, -Infinity, NaN, "NaN"]', "-NaN", "{NaN: 1}", "1NaN", "01", "+1", ".5", "1.", "nul"]),
        ({}, ['{"a": "x\ny"}', '{"a": "x\ty"}', '{"a": "\\u00e9\\ud800"}', '{"a": "\u2028"}', "```python\n{}\n```", "````json\n{}\n````", '\ufeff{"a": 1}']),
        ({}, ['Here:\n{"a": 1}', '{"a": 1}\nDone.', '{"a": 1}{"b": 2}', '{"a": 1, "a": 2}', "```json```json\n{}\n```", "``````json {}```", '{"a": "*b*"}', '*{"a": 1}*', "\u00a0{}\u3000", "[\u00a01]"]),
    ],
    "detectable_format:title": [
        ({}, ["<<Title>>\nText", "Text <<a>> text", "<Title>", "<<>>", "<< >>", "<<a\nb>>", "<<<a>>>", "<<a> >"]),
        ({}, ["<<\u00a0>>", "<<>> <<x>>", "<<<<>>>>", "<< > >>", "<<a\rb>>", "«Title»", "\\<<T\\>>", "<<T*i*tle>>", "<<a>"]),
    ],
    "combination:two_responses": [
        ({}, ["One.\n******\nTwo.", "One.******Two.", "******\nOne.\n******\nTwo.\n******", "One.\n******\nOne.", "One.\n***\nTwo."]),
        ({}, ["One.*******Two.", "One.************Two.", "One.\n****** \n******\nTwo.", "A******B******C", "A\n******\n", "A\n******\nA \n", "a\n******\nA"]),
        ({}, ["A\n* * * * * *\nB", "\x1c******A******\x85B", "Two answers:\nA\n******\nB\nBye", "A ****** A.", "*A******B*"]),
    ],
    "combination:repeat_prompt": [
        ({"prompt_to_repeat": "Write a short poem about rain."}, ["Write a short poem about rain.\n\nDrip.", "WRITE A SHORT POEM ABOUT RAIN. Drip.", "Write a short poem  about rain.", "Sure! Write a short poem about rain."]),
        ({"prompt_to_repeat": " \u00c9t\u00e9?\n"}, ["été? oui", "ÉTÉ? oui", "ete?", "*Été?*", "\"été?\"", "\u00a0\nété?", "E\u0301te\u0301?", "\ufeffété?"]),
        ({"prompt_to_repeat": "Line one\nline two"}, ["Line one\nline two\nmore", "Line one line two", "Line one\r\nline two", "x\nLine one\nline two", "Line *one*\nline two"]),
        ({"prompt_to_repeat": "\u0130stanbul \u039f\u0394\u039f\u03a3"}, ["İSTANBUL ΟΔΟΣ", "i̇stanbul οδος", "istanbul οδος", "İstanbul οδοσ", "İstanbul ΟΔΟΣ!"]),
    ],
    "startend:end_checker": [
        ({"end_phrase": "Shall I go on?"}, ["Yes. Shall I go on?", "SHALL I GO ON?", 'x "shall I go on?"', "Shall I go on? ", "Shall I go on?."]),
        ({"end_phrase": " The End. "}, ["The end.\n", "The end", "*The end.*", "**The End.**", "The end.''", "The end.\u201d", 'the end." "', "the end.\nBye", "the  end.", '"""the end."""']),
        ({"end_phrase": "\u03a3\u039f\u03a6\u039f\u03a3"}, ["ο ΣΟΦΟΣ", "ο σοφος", "σοφοσ", "ο ΣΟΦΟΣ\u00a0", "ο ΣΟΦΟΣ\ufeff"]),
    ],
    "startend:quotation": [
        ({}, ['"All of it."', '"', '""', '"a', 'a"', "“All of it.”", "'a'", '"a" and "b"', ' "a"\n', '*"a"*', '"a".', "''a''", '"a\n\nb"', '\\"a\\"', '\u00a0"a"\x85', '\ufeff"a"', '```\n"a"\n```', '""a""']),
    ],
    "change_case:capital_word_frequency": [
        ({"capital_frequency": 2, "capital_relation": AT_LEAST}, ["NASA and ESA", "I am A", "DON'T", "WELL-KNOWN", "A-b C-d", "HELLO, World!", "U.S.A. U.K.", "X1 2Y", "I'M", "ÉCOLE ÜBER"]),
        ({"capital_frequency": 2, "capital_relation": LESS}, ["One WORD", "NO. WAY.", "*BIG* deal", "**BIG** **NEWS**", "GIMME", "CANNOT go", "'TIS so", "#TAG @USER", "a\nBIG DAY", "Ⅷ Ⓐ ǅ"]),
        ({"capital_frequency": 4, "capital_relation": AT_LEAST}, ["THIS IS ALL BIG.", "“QUOTED” ‘WORDS’ «HERE» „NOW“", "A--B C—D", "(ONE)[TWO]{THREE}<FOUR>", "A/B/C/D", "ONE_TWO THREE FOUR FIVE", "IT'S THEY'LL WE'VE", "DO N'T", "A. B. C. D."]),
    ],
    "change_case:english_capital": [
        ({}, ["THIS IS A SHORT ANSWER.", "THIS IS A Short ANSWER.", "OK", "NO 1!", "A", TEXTS["de"].upper(), TEXTS["es"].upper(), "1234", "THE QUICK BROWN FOX JUMPS OVER THE LAZY DOG."]),
        ({}, ["ǅ", "ⅷ", "ªBC", "İT IS", "Sure:\nTHE ANSWER IS YES.", "THE ANSWER\n```\nx = 1\n```", TEXTS["fr"].upper(), "HTTP://EXAMPLE.COM IS WHERE WE WERE WITH THE OTHERS", TEXTS["ru"].upper()]),
        ({}, ["WE WENT TO THE MARKET AND BOUGHT SOME BREAD AND MILK FOR THE WEEK", "I", "DEAR SIR, PLEASE FIND ATTACHED MY APPLICATION FOR THE POST OF TEACHER AT YOUR SCHOOL. YOURS, ANN"]),
    ],
    "change_case:english_lowercase": [
        ({}, ["this is a short answer to the question.", "this is a Short answer.", "ok", "no 1!", "a", TEXTS["de"].lower(), TEXTS["nl"].lower(), "1234"]),
        ({}, ["Sure:\nthe answer to that is yes and it always was.", "we went to the market and bought some bread", "ꭓ ª", "ǆ", "𝐚𝐛𝐜", "hello, world", "le chat est sur la table avec nous", "it's me"]),
    ],
    "punctuation:no_comma": [
        ({}, ["No commas here at all.", "One, two.", "One、two，three", "1,000", "a;b:c", "a‚b", "a،b", "Well, yes:\nno commas now", "a\u0326", "{\"a\": 1}", "line one\nline two, end"]),
    ],
}

TEXT_CASES = [
    *TEXTS.values(),
    *(text.upper() for text in TEXTS.values()),
    *UNUSUAL,
    # langdetect reads only the first 10,000 characters, spaces included.
    " " * 9850 + ENGLISH + TEXTS["de"] * 2,
    unicodedata.normalize("NFD", TEXTS["vi"]),
    TEXTS["ro"].replace("\u0219", "\u015f").replace("\u021b", "\u0163"),
    "https://example.com/der/die/das?und=nicht " * 3 + "der.und.die@nicht.example und " + ENGLISH,
    TEXTS["de"] + " " + TEXTS["en"] + " " + TEXTS["nl"],
    TEXTS["ko"] + " Please answer in English",
    "Bonjour", "Guten Tag", "Hola", "Ciao bella", "はい", "你好", "Да.", "I am", "NO WAY", "OK then",
    "Dear Dr. Jones, I met Mr. Smith at 5 p.m. on Jan. 3. We spoke of the U.S. economy. He works at Acme Corp. The firm is old.",
    "First... then nothing. Wait... What? No!! Yes?! (Maybe.) [Sure.] \"Fine.\" 'Good.' “Done.” End",
    "1. Wash the rice.\n2. Boil 1.5 l of water.\n3. Add salt.\n\n- It takes 10 min. or so.\n* Serve hot!",
    "Visit example.com. Write to me@example.com. Version 2.0. is out. It was 3. the end. No. 7 won. See p. 12. ok",
    "J. R. Smith and A. Jones. Plan B. Make a list. Vitamin C. is good. e.g. this, i.e. that, etc. And more.",
    "# Title\n\n**Bold.** Then *italic*. `code.` And [a link](https://x.y/z). | a. | b. |\n\n> Quote. More.\n\n---\n\nEnd.",
    "He said, \"Go.\" She said, \"No!\" \"Why?\" he asked. 'Because.' -- It ended.--Really. Yes.No. A.B.C. D.",
    "DON'T you'll I'm we've it's dogs' cannot gimme gonna gotta lemme wanna go 'tis 'twas d'ye more'n O'Neil rock'n'roll",
    "a--b c—d e–f 1,000 10:30 x,y x, y; $5 50% #1 @me R&D ...and.. so. on.) \"q\" ``r'' 's' “t” «u» <v> {w} [x] (y) *z*",
    "x\u0301 नमस्ते ½ ² Ⅷ a_b \u200d c\u200dd \x1c e\x85f g\u2028h İı ß 𝐀𝐁 😀",
]


def responses():
    for kind, groups in RESPONSES.items():
        seen = set()
        for at, (kwargs, group) in enumerate(groups):
            forms = [form for response in group[:1] for form in with_chat_phrases(response)] + group[1:]
            for response in forms + (UNUSUAL if at == 0 else []):
                if (key := json.dumps([kwargs, response])) not in seen:
                    seen.add(key)
                    yield {"instruction_id_list": [kind], "kwargs": [kwargs], "response": response}


lines = responses() if sys.argv[1:] == ["responses"] else ({"text": text} for text in TEXT_CASES)
for line in lines:
    print(json.dumps(line, ensure_ascii=False))
