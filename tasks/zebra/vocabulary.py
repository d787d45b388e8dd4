"""The attributes of ZebraLogic, their values, and the phrase by which the benchmark's clues mention each value.

The wording is the benchmark's (Lin et al., ZebraLogic; arXiv 2502.01100), kept letter for letter, slips included: real
puzzles can then be read, and generated ones look like real ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from ...signatures.answers import fold

#: The number of houses and of attributes, each, goes from 2 to 6: 25 sizes.
SMALLEST, LARGEST = 2, 6


@dataclass(frozen=True)
class Attribute:
    """One column of a grid.

    Attributes:
        name: the column's name, as in the answer ("PhoneModel").
        sentence: how the puzzle introduces its values.
        phrases: value -> how a clue mentions the person who has it. A puzzle with N houses uses the first N values.
    """

    name: str
    sentence: str
    phrases: dict[str, str]


def _same(*values: str) -> dict[str, str]:
    return {value: value for value in values}


#: Every puzzle has the names; they come first.
NAME = Attribute("Name", "Each person has a unique name", _same("Eric", "Arnold", "Peter", "Alice", "Bob", "Carol"))

#: All 25 attributes.
ATTRIBUTES: tuple[Attribute, ...] = (
    NAME,
    Attribute(
        "Nationality",
        "The people are of nationalities",
        {
            "dane": "the Dane",
            "brit": "the British person",
            "swede": "the Swedish person",
            "norwegian": "the Norwegian",
            "german": "the German",
            "chinese": "the Chinese",
        },
    ),
    Attribute(
        "BookGenre",
        "People have unique favorite book genres",
        {
            "mystery": "the person who loves mystery books",
            "science fiction": "the person who loves science fiction books",
            "romance": "the person who loves romance books",
            "fantasy": "the person who loves fantasy books",
            "biography": "the person who loves biography books",
            "historical fiction": "the person who loves historical fiction books",
        },
    ),
    Attribute(
        "Food",
        "Everyone has something unique for lunch",
        {
            "pizza": "the person who is a pizza lover",
            "grilled cheese": "the person who loves eating grilled cheese",
            "spaghetti": "the person who loves the spaghetti eater",
            "stew": "the person who loves the stew",
            "stir fry": "the person who loves stir fry",
            "soup": "the person who loves the soup",
        },
    ),
    Attribute(
        "Color",
        "Each person has a favorite color",
        {
            "yellow": "the person who loves yellow",
            "red": "the person whose favorite color is red",
            "white": "the person who loves white",
            "green": "the person whose favorite color is green",
            "blue": "the person who loves blue",
            "purple": "the person who loves purple",
        },
    ),
    Attribute(
        "Animal",
        "The people keep unique animals",
        {
            "cat": "the cat lover",
            "horse": "the person who keeps horses",
            "bird": "the bird keeper",
            "fish": "the fish enthusiast",
            "dog": "the dog owner",
            "rabbit": "the rabbit owner",
        },
    ),
    Attribute(
        "Occupation",
        "Each person has an occupation",
        {
            "doctor": "the person who is a doctor",
            "engineer": "the person who is an engineer",
            "teacher": "the person who is a teacher",
            "artist": "the person who is an artist",
            "lawyer": "the person who is a lawyer",
            "nurse": "the person who is a nurse",
        },
    ),
    Attribute(
        "PhoneModel",
        "People use unique phone models",
        {
            "iphone 13": "the person who uses an iPhone 13",
            "samsung galaxy s21": "the person who uses a Samsung Galaxy S21",
            "google pixel 6": "the person who uses a Google Pixel 6",
            "oneplus 9": "the person who uses a OnePlus 9",
            "huawei p50": "the person who uses a Huawei P50",
            "xiaomi mi 11": "the person who uses a Xiaomi Mi 11",
        },
    ),
    Attribute(
        "Children",
        "Each mother is accompanied by their child",
        {
            "Bella": "the person's child is named Bella",
            "Fred": "the person's child is named Fred",
            "Meredith": "the person's child is named Meredith",
            "Samantha": "the person's child is named Samantha",
            "Timothy": "the person who is the mother of Timothy",
            "Alice": "the person's child is named Alice",
        },
    ),
    Attribute(
        "MusicGenre",
        "People have unique favorite music genres",
        {
            "pop": "the person who loves pop music",
            "rock": "the person who loves rock music",
            "classical": "the person who loves classical music",
            "jazz": "the person who loves jazz music",
            "hip hop": "the person who loves hip-hop music",
            "country": "the person who loves country music",
        },
    ),
    Attribute(
        "Height",
        "People have unique heights",
        {
            "very short": "the person who is very short",
            "short": "the person who is short",
            "average": "the person who has an average height",
            "tall": "the person who is tall",
            "very tall": "the person who is very tall",
            "super tall": "the person who is super tall",
        },
    ),
    Attribute(
        "Mother",
        "The mothers' names in different houses are unique",
        {
            name: f"the person whose mother's name is {name}"
            for name in ("Aniya", "Holly", "Janelle", "Kailyn", "Penny", "Sarah")
        },
    ),
    Attribute(
        "Vacation",
        "Each person prefers a unique type of vacation",
        {
            "beach": "the person who loves beach vacations",
            "mountain": "the person who enjoys mountain retreats",
            "city": "the person who prefers city breaks",
            "cruise": "the person who likes going on cruises",
            "camping": "the person who enjoys camping trips",
            "cultural": "the person who goes on cultural tours",
        },
    ),
    Attribute(
        "Pet",
        "Each person has a unique type of pet",
        {
            "cat": "the person who has a cat",
            "dog": "the person who owns a dog",
            "fish": "the person with an aquarium of fish",
            "bird": "the person who keeps a pet bird",
            "hamster": "the person with a pet hamster",
            "rabbit": "the person who owns a rabbit",
        },
    ),
    Attribute(
        "Birthday",
        "Each person has a unique birthday month",
        {
            "april": "the person whose birthday is in April",
            "sept": "the person whose birthday is in September",
            "jan": "the person whose birthday is in January",
            "feb": "the person whose birthday is in February",
            "mar": "the person whose birthday is in March",
            "may": "the person whose birthday is in May",
        },
    ),
    Attribute(
        "HouseStyle",
        "Each person lives in a unique style of house",
        {
            "victorian": "the person residing in a Victorian house",
            "colonial": "the person living in a colonial-style house",
            "ranch": "the person in a ranch-style home",
            "craftsman": "the person in a Craftsman-style house",
            "modern": "the person in a modern-style house",
            "mediterranean": "the person in a Mediterranean-style villa",
        },
    ),
    Attribute(
        "Flower",
        "They all have a unique favorite flower",
        {
            "carnations": "the person who loves a carnations arrangement",
            "daffodils": "the person who loves a bouquet of daffodils",
            "lilies": "the person who loves the boquet of lilies",
            "roses": "the person who loves the rose bouquet",
            "tulips": "the person who loves the vase of tulips",
            "iris": "the person who loves the boquet of iris",
        },
    ),
    Attribute(
        "Education",
        "Each person has a unique level of education",
        {
            "high school": "the person with a high school diploma",
            "associate": "the person with an associate's degree",
            "bachelor": "the person with a bachelor's degree",
            "master": "the person with a master's degree",
            "doctorate": "the person with a doctorate",
            "trade school": "the person who attended trade school",
        },
    ),
    Attribute(
        "FavoriteSport",
        "People have unique favorite sports",
        {
            sport: f"the person who loves {sport}"
            for sport in ("basketball", "soccer", "tennis", "swimming", "baseball", "volleyball")
        },
    ),
    Attribute(
        "Cigar",
        "Everyone has a unique favorite cigar",
        {
            "pall mall": "the person partial to Pall Mall",
            "prince": "the Prince smoker",
            "blue master": "the person who smokes Blue Master",
            "dunhill": "the Dunhill smoker",
            "blends": "the person who smokes many unique blends",
            "yellow monster": "the person who smokes Yellow Monster",
        },
    ),
    Attribute(
        "CarModel",
        "People own unique car models",
        {
            "tesla model 3": "the person who owns a Tesla Model 3",
            "ford f150": "the person who owns a Ford F-150",
            "toyota camry": "the person who owns a Toyota Camry",
            "honda civic": "the person who owns a Honda Civic",
            "bmw 3 series": "the person who owns a BMW 3 Series",
            "chevrolet silverado": "the person who owns a Chevrolet Silverado",
        },
    ),
    Attribute(
        "Hobby",
        "Each person has a unique hobby",
        {
            "photography": "the photography enthusiast",
            "gardening": "the person who enjoys gardening",
            "cooking": "the person who loves cooking",
            "painting": "the person who paints as a hobby",
            "knitting": "the person who enjoys knitting",
            "woodworking": "the woodworking hobbyist",
        },
    ),
    Attribute(
        "Drink",
        "Each person has a unique favorite drink",
        {
            "tea": "the tea drinker",
            "water": "the one who only drinks water",
            "milk": "the person who likes milk",
            "coffee": "the coffee drinker",
            "root beer": "the root beer lover",
            "boba tea": "the boba tea drinker",
        },
    ),
    Attribute(
        "HairColor",
        "People have unique hair colors",
        {color: f"the person who has {color} hair" for color in ("black", "brown", "blonde", "red", "gray", "auburn")},
    ),
    Attribute(
        "Smoothie",
        "Everyone has a favorite smoothie",
        {
            "cherry": "the person who likes Cherry smoothies",
            "desert": "the Desert smoothie lover",
            "watermelon": "the Watermelon smoothie lover",
            "dragonfruit": "the Dragonfruit smoothie lover",
            "lime": "the person who drinks Lime smoothies",
            "blueberry": "the person who drinks Blueberry smoothies",
        },
    ),
)


@cache
def by_name() -> dict[str, Attribute]:
    """Return the attributes by their folded names."""
    return {fold(attribute.name): attribute for attribute in ATTRIBUTES}


@cache
def by_sentence() -> dict[str, Attribute]:
    """Return the attributes by the folded sentences that introduce them."""
    return {fold(attribute.sentence): attribute for attribute in ATTRIBUTES}
