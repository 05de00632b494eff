"""How the five registers of Joos open, close and turn a phrase. Other registers speak like Consultative."""

from __future__ import annotations

from collections.abc import Mapping

from policysweep.models.rehearsal import draws

_OPENERS: Mapping[str, tuple[str, ...]] = {
    "frozen": (
        "In reply to your inquiry, the following is stated for the record.",
        "Your question has been received and is answered herewith.",
        "The particulars requested are these.",
    ),
    "formal": (
        "Thank you for your message; I am glad to answer.",
        "I appreciate the careful question and will be exact.",
        "Allow me to answer your questions in order.",
    ),
    "consultative": (
        "Let me think, so that I tell you this properly.",
        "That is a fair question, so here is how it stands.",
        "All right, let me go through it with you.",
    ),
    "casual": (
        "ok sure, here goes.",
        "yep, fair question.",
        "right, so, quick version:",
    ),
    "intimate": (
        "Oh, of course, you should know that, my dear.",
        "Well, since you ask so kindly, I'll tell you just as it was.",
        "Goodness, yes, I ought to have said so at once.",
    ),
}

_CLOSERS: Mapping[str, tuple[str, ...]] = {
    "frozen": ("Your further determination is awaited.", "It is trusted that this suffices for the file."),
    "formal": ("I look forward to your assessment.", "Please let me know how you wish to proceed."),
    "consultative": ("How does that look to you?", "Tell me what you make of that."),
    "casual": ("so what happens now?", "does that help? keen to get this sorted"),
    "intimate": (
        "I do hope that helps, and thank you for being so patient with me.",
        "You'll know best what to do with that, won't you?",
    ),
}

_ORDER: Mapping[str, str] = {
    "frozen": "The order in question bears the number {0}.",
    "formal": "The order number is {0}.",
    "consultative": "I have it here: the order number is {0}.",
    "casual": "order number's {0}",
    "intimate": "I've found the slip, it says {0}, if I read it rightly.",
}

_NOTHING_MORE: Mapping[str, tuple[str, ...]] = {
    "frozen": ("Nothing further is known to me beyond what has already been set down.",),
    "formal": ("Beyond what I have already stated, I have nothing to add.",),
    "consultative": ("I think I have told you all that I know about that.",),
    "casual": ("honestly that's all I've got, told you the rest already.",),
    "intimate": ("I really couldn't tell you more than I have, much as I'd like to.",),
}

_OBJECTIONS: Mapping[str, tuple[str, ...]] = {
    "frozen": (
        "The determination cannot be accepted in its present form, and reconsideration is hereby requested.",
        "Objection is entered to the terms as stated; they do not follow from the published policy.",
    ),
    "formal": (
        "With respect, I cannot agree with this, as the policy may equally be read in my favor.",
        "I must object to this proposal and would ask you to review it once more.",
    ),
    "consultative": (
        "I hear you, but I cannot agree with that yet; the wording could be read the other way.",
        "Hmm, that does not seem right to me. Could we look at that point again together?",
    ),
    "casual": (
        "nah, that's not okay for me, it's not like I did anything wrong here. can you look again?",
        "hmm no, I don't agree. pretty sure your own page says otherwise, can you do better?",
    ),
    "intimate": (
        "Oh, I must say that doesn't sit right with me at all; could you not look at it once more?",
        "I'm sorry to be difficult, truly, but I can't agree to that. Is there no other way?",
    ),
}

_ACCEPTANCES: Mapping[str, tuple[str, ...]] = {
    "frozen": (
        "The proposal is accepted. Kindly proceed accordingly and confirm execution in writing.",
        "Agreement is hereby given to the terms stated; please go ahead.",
    ),
    "formal": (
        "Thank you, that is acceptable to me. Please go ahead and confirm it in writing.",
        "I accept your proposal and would ask you to proceed on that basis.",
    ),
    "consultative": (
        "Yes, put like that I can live with it. Please go ahead, and tell me what I need to do on my side.",
        "All right, that seems fair to me, so yes, please proceed.",
    ),
    "casual": (
        "ok deal, that works for me. go ahead and send me whatever I need",
        "yep, fine by me, please go ahead. thanks for sorting it",
    ),
    "intimate": (
        "Oh, that's kind of you, yes, please go ahead, and thank you for taking such trouble over it.",
        "Then let's do just that, I accept it gladly; please go ahead, my dear.",
    ),
}

_GRUDGING: Mapping[str, str] = {
    "frozen": "The decision is noted with regret and accepted under the circumstances; the file may be "
    "closed.",
    "formal": "I do not share your reading, but I accept the decision. Please go ahead and close the matter.",
    "consultative": "I see it differently, but I understand the reasoning, so all right, I accept it.",
    "casual": "not thrilled, but ok, I'll accept it. thanks for at least explaining",
    "intimate": "Well, I can't say I'm happy, but I accept it, and I know it isn't your fault, love.",
}

_FAREWELLS: Mapping[str, str] = {
    "frozen": "As no acceptable settlement can be reached, the request is hereby withdrawn.",
    "formal": "As we cannot come to terms, I withdraw my request and will not pursue it here.",
    "consultative": "We are not getting anywhere, so I will leave it at that and drop the matter.",
    "casual": "ok this is going nowhere, forget it, I'm out",
    "intimate": "I don't think this is going to end well, so I'd rather let it be. Goodbye now.",
}

_PERSON: Mapping[str, str] = {
    "frozen": "It is requested that the matter be laid before a person with authority to decide.",
    "formal": "I would therefore ask that a colleague with the authority to decide looks at the case.",
    "consultative": "Perhaps somebody who can decide such cases should look at it, what do you think?",
    "casual": "can I just talk to a real person about this?",
    "intimate": "Might I perhaps speak to somebody who is allowed to decide such things?",
}

_WORRIES: tuple[str, ...] = (
    "I do not see why I should bear that alone.",
    "The wording on your page leaves room for more than that.",
    "It is not a small sum for me.",
    "I have been open with you about everything.",
    "I had expected a more generous reading of your own terms.",
    "Please consider the case as a whole.",
)


class Voice:
    """One customer's choice of words; `key` is what the choices are drawn from."""

    def __init__(self, register: str, *key: object) -> None:
        self._register = register if register in _OPENERS else "consultative"
        self._key = key

    def answer(self, parts: list[str]) -> str:
        """The parts as an answer."""
        return self._join(self._pick(_OPENERS), *parts, self._pick(_CLOSERS))

    def order_number(self, order_id: str) -> str:
        """The order number as a sentence."""
        return _ORDER[self._register].format(order_id)

    def nothing_more(self) -> str:
        """There is no more to tell."""
        return self._pick(_NOTHING_MORE)

    def objection(self, counter: str) -> str:
        """An objection with a worry, and a counter-offer unless it is empty."""
        return self._join(self._pick(_OBJECTIONS), draws.choose(_WORRIES, "worry", *self._key), counter)

    def acceptance(self) -> str:
        """A plain yes."""
        return self._pick(_ACCEPTANCES)

    def grudging_acceptance(self) -> str:
        """A yes without joy."""
        return _GRUDGING[self._register]

    def ask_for_person(self) -> str:
        """An objection that asks for a human."""
        return self._join(self._pick(_OBJECTIONS), _PERSON[self._register])

    def farewell(self) -> str:
        """The last words before leaving."""
        return _FAREWELLS[self._register]

    def _pick(self, table: Mapping[str, tuple[str, ...]]) -> str:
        return draws.choose(table[self._register], len(table["frozen"]), *self._key)

    def _join(self, *parts: str) -> str:
        return " ".join(part for part in parts if part)
